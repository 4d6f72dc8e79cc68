#include <filesystem>

#include "octet/base/output.hpp"
#include "octet/cli/trained_model.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/weights.hpp"

namespace octet::cli {
namespace {

struct Options : TrainedModel {
  std::string output, dtype = "input";
  bool force = false;
};

// A model that was fetched, or trained for days, is never replaced by a later form of it.
void require_other_folder(const std::string& output, const ModelSource& source) {
  std::error_code missing;
  for (const std::string& origin : source.origins)
    if (!origin.empty() && std::filesystem::equivalent(output, origin, missing))
      throw ConfigError(format("--output {}: {} is made of the model in this folder, which is never replaced; name another folder",
                               printable(output), printable(source.folder)));
}

ExitCode export_model(const Options& o) {
  models::require_export_folder(o.output, o.force ? models::Existing::replace : models::Existing::refuse);
  require_other_folder(o.output, o.source());
  const auto engine = o.load(1);
  const models::Companions& companions = o.source().companions;
  const DType dtype = o.dtype == "input" ? models::weights_dtype(companions) : o.dtype == "bf16" ? DType::bf16 : DType::f32;
  train::save_weights(*engine, o.output, dtype, companions);
  const std::int64_t parameters = engine->parameters.count() - o.source().shape.padding();
  output::print("{}: {} parameters as {}, of {}\n", printable(o.output), grouped(parameters), dtype, printable(o.source().folder));
  return ExitCode::done;
}

}  // namespace

void add_export(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("export", "Write a model as a Hugging Face folder, for transformers",
                                    "  octet export runs/current --output exported --dtype bf16\n"
                                    "  octet export runs/current --step 400 --output exported    a checkpoint of the run",
                                    Result::file);
  o->add_source_to(command);
  command.option("-o,--output", o->output, "folder to create", {}, true);
  command.option("--dtype", o->dtype, "f32, bf16, or input: that of the model it began from, or f32", {.one_of = {"input", "f32", "bf16"}});
  command.flag("--force", o->force, "replace a model that is in the folder; never the one that this one is made of");
  command.run([o] {
    o->precision.recipe = "fp32", o->device = "cpu";
    return export_model(*o);
  });
}

}  // namespace octet::cli
