#include "octet/trained/model_source.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/config/read.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/peft_folder.hpp"
#include "octet/train/run/checkpoints/checkpoint_weights.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::trained {
namespace {

// The model from which a run began, of its configuration's file; "" where it is not known.
std::string init_of_run(const std::string& run) {
  const std::string file = run + "/config.toml";
  try {
    train::RunConfig config;
    if (exists(file)) config::read_toml(read_file(file, std::size_t(1) << 20), file, config, config::Written::by_program);
    return config.model.init;
  } catch (const Error&) {
    return "";
  }
}

// `run`: whose final weights the folder has, or "".
ModelSource of_folder(const std::string& folder, const std::string& run) {
  const models::ModelShape shape = models::read_hugging_face_shape(folder);  // its errors come first
  ModelSource out{.folder = folder, .companions_folder = folder, .companions = models::read_companions(folder), .shape = shape};
  out.origins = {folder};
  if (!run.empty()) out.origins.push_back(init_of_run(run));
  return out;
}

// Adapters, and the model over which they were trained.
ModelSource of_adapters(const std::string& folder, const std::string& run) {
  const std::string base = models::base_of_peft_folder(folder);
  if (!exists(base + "/config.json"))
    throw ConfigError(
        format("{}/adapter_config.json: base_model_name_or_path = \"{}\": there is no model's folder of this name here; write the path of "
               "the model that the adapters belong to",
               printable(folder), printable(base)));
  ModelSource out = of_folder(base, "");
  out.adapters = models::read_peft_folder(folder, out.shape);
  out.origins.push_back(folder);
  if (!run.empty()) out.origins.push_back(run + "/weights");
  return out;
}

// The final weights of a run.
ModelSource of_result(const std::string& run) {
  const std::string folder = run + "/weights";
  return models::is_peft_folder(folder) ? of_adapters(folder, run) : of_folder(folder, run);
}

/// Of a checkpoint that was found good.
ModelSource of_checkpoint(const std::string& run, const std::string& checkpoint, const train::Manifest& manifest) {
  train::RunConfig config;
  config::read_toml(manifest.config, format("{}/{}: config", checkpoint, train::Manifest::file_name), config, config::Written::by_program);
  config = train::stored_model(std::move(config), run);
  if (config.lora) {
    ModelSource out = of_folder(config.model.init, "");
    out.adapters = train::checkpoint_adapters(checkpoint, out.shape, config.lora);
    out.origins.push_back(checkpoint);
    return out;
  }
  ModelSource out{.folder = checkpoint, .checkpoint = true};
  if (exists(train::model_folder(run))) out.companions_folder = train::model_folder(run);
  out.companions = out.companions_folder.empty() ? models::Companions() : models::read_companions(out.companions_folder);
  out.shape = config.model.shape(), out.precision = scaling::final_part(config.recipe);
  out.origins = {out.companions_folder, init_of_run(run)};
  return out;
}

ModelSource of_run(const std::string& run, std::int64_t step) {
  const train::CheckpointStore store(train::checkpoint_folder(run));
  const std::vector<std::int64_t> steps = store.steps();
  std::vector<std::string> words;
  for (const std::int64_t s : steps) words.push_back(to_text(s));
  if (step >= 0 && std::find(steps.begin(), steps.end(), step) == steps.end())
    throw ConfigError(format("--step {}: {} has no checkpoint of that step; {}", step, printable(run),
                             steps.empty() ? std::string("it has none") : format("there are {}", joined(words))));
  if (step >= 0) return of_checkpoint(run, store.path(step), store.verify(step));
  const auto newest = train::newest_good(store, nullptr);
  if (!newest) return of_result(run);
  return of_checkpoint(run, store.path(newest->step), *newest);
}

bool is_checkpoint(const std::string& folder) { return exists(folder + "/" + train::Manifest::file_name); }

/// A checkpoint named by its own folder: RUN/checkpoints/step-000000120.
ModelSource of_checkpoint_folder(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  const std::filesystem::path place = path.has_filename() ? path : path.parent_path(), checkpoints = place.parent_path();
  const train::CheckpointStore store(checkpoints.empty() ? "." : checkpoints.string());
  for (const std::int64_t step : store.steps())
    if (std::filesystem::path(store.path(step)).filename() == place.filename())
      return of_checkpoint(checkpoints.empty() ? ".." : (checkpoints / "..").lexically_normal().string(), store.path(step),
                           store.verify(step));
  throw ConfigError(format("{}: a checkpoint's folder is called step-<number>; give it its name back", printable(folder)));
}

}  // namespace

ModelSource ModelSource::find(const std::string& folder, std::int64_t step) {
  models::require_folder(folder);
  const auto has_result = [&] { return exists(folder + "/weights/config.json") || models::is_peft_folder(folder + "/weights"); };
  const bool run = exists(train::checkpoint_folder(folder)) || has_result();
  if (step >= 0 && !run)
    throw ConfigError(
        format("--step {}: {} is no run's folder, so it has no checkpoints; name a run, or leave out --step", step, printable(folder)));
  if (exists(folder + "/config.json")) return of_folder(folder, exists(folder + "/../config.toml") ? folder + "/.." : "");
  if (models::is_peft_folder(folder)) return of_adapters(folder, "");
  if (is_checkpoint(folder)) return of_checkpoint_folder(folder);
  if (run && (step >= 0 || has_result() || !train::CheckpointStore(train::checkpoint_folder(folder)).steps().empty()))
    return of_run(folder, step);
  throw ConfigError(format(
      "{}: neither it nor its folder `weights` has a config.json, and it has no checkpoint; name a Hugging Face folder, a checkpoint, or "
      "a finished run",
      printable(folder)));
}

void ModelSource::load(train::Engine& engine) const {
  if (checkpoint) return train::load_checkpoint_weights(engine, folder);
  train::load_weights(engine, io::TensorFolder::open(folder), adapters);
}

}  // namespace octet::trained
