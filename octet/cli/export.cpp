#include <filesystem>

#include "octet/base/output.hpp"
#include "octet/cli/model_options.hpp"
#include "octet/data/dataset.hpp"
#include "octet/models/gguf/gguf.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/stored_scales.hpp"
#include "octet/nn/linear.hpp"
#include "octet/train/step/weights.hpp"
#include "octet/trained/static_scales.hpp"

namespace octet::cli {
namespace {

struct Options : ModelOptions {
  std::string output, dtype = "input";
  std::int64_t calibration = 0;
  TextOptions set;  // of calibration
  bool force = false;
};

// A model that was fetched, or trained for days, is never replaced by a later form of it.
void require_other_folder(const std::string& output, const trained::ModelSource& source) {
  std::error_code missing;
  for (const std::string& origin : source.origins)
    if (!origin.empty() && std::filesystem::equivalent(output, origin, missing))
      throw ConfigError(format("--output {}: {} is made of the model in this folder, which is never replaced; name another folder",
                               printable(output), printable(source.folder)));
}

// How a run had the weights of its layers, beside a form with codes. The first layer with codes of the form's blocks has the rule of
// scales.
struct RunLayers final : nn::Visitor {
  explicit RunLayers(const models::WeightForm& form) : form(form) {}
  void linear(nn::LinearSite& l) override {
    const Parameter& weight = l.weight().parameter();
    if (!l.path().starts_with("layers.") || weight.role == ParameterRole::router) return;  // no form has codes of routers
    const ops::QuantizeSpec spec = l.weight().spec(scaling::recomputing);
    if (!spec.quantizes()) return kept.push_back(weight.path);
    const ScaleBlock block = spec.rows.whole_matrices() ? ScaleBlock{} : spec.rows;  // a folder has a tensor per expert
    const bool like = spec.format == DType::e4m3 && block == form.block() && !spec.scale_known();
    if (like && !rule) rule = spec.rule;
    (like && spec.rule == rule ? equal : others).push_back(l.path());
  }
  const models::WeightForm& form;
  std::optional<ScaleRule> rule;
  std::vector<std::string> kept, equal, others;
};

RunLayers layers_of_run(const trained::ModelSource& source, const models::WeightForm& form) {
  RunLayers out(form);
  if (!source.precision || !scaling::names_eight_bits(*source.precision)) return out;
  const train::Engine planned({.shape = source.shape, .precision = *source.precision, .sequence = 1}, Device::null, {});
  planned.model->visit(out);
  return out;
}

// Of a folder with codes: the rule of its scales, so that these come out again.
ScaleRule rule_of_source(const trained::ModelSource& source) {
  const std::optional<ScaleRule> stored = source.checkpoint ? std::nullopt : models::rule_of_scales(io::TensorFolder::open(source.folder));
  return stored.value_or(ScaleRule::power_of_two);
}

// Whether the codes are those of the run, and where they are not.
void print_codes(const trained::ModelSource& source, train::Engine& engine, const models::WeightForm& form, const RunLayers& layers) {
  output::print("embedding, head, norms and biases are bf16; activation scales are {}\n", form.input_scales.empty() ? "dynamic" : "static");
  if (!form.kept.empty())
    output::print("layers in bf16, as {}: {}, such as {}\n", layers.kept.empty() ? "8 bits do not fit their shapes" : "in the run",
                  form.kept.size(), form.kept.front());
  if (layers.equal.empty())
    return output::print("the codes are new: the model was not trained with such codes, or its folder does not say so\n");
  if (!layers.others.empty())
    output::print("layers whose codes are new, since the run had other ones: {}, such as {}\n", layers.others.size(),
                  layers.others.front());
  const auto others = models::tensors_with_other_blocks(source.shape, train::biases_of(engine).behind(engine.parameters.list()), form);
  if (!others.empty())
    output::print("tensors whose codes are new, since blocks of the run have rows of several tensors: {}, such as {}\n", others.size(),
                  others.front());
  output::print("{} codes are those that the run trained with\n", layers.others.empty() && others.empty() ? "all" : "other");
}

// The model in memory, with the static scales of activations where the form has them.
std::unique_ptr<train::Engine> load(Options& o, models::WeightForm& form, const std::vector<std::string>& given) {
  const bool per_tensor = form.codes == models::WeightForm::Codes::tensor;
  if (o.calibration == 0) {
    if (per_tensor && o.source().checkpoint) form.input_scales = trained::scales_of_run(o.source());
    return o.load(1);
  }
  if (!per_tensor)
    throw ConfigError(
        format("--calibration: {} has dynamic scales of activations; leave it out, or export with --dtype fp8-tensor", form.name()));
  o.set.complete(o.folder, given);
  const data::Dataset dataset(o.set.token_folder(o.source().companions_folder), data::Verify::everything, o.set.key());
  data::require_same_tokenizer(dataset, o.source().companions_folder, o.source().shape.vocabulary);
  data::require_vocabulary(dataset, o.source().shape.vocabulary);
  const data::EvalBatches batches = o.set.batches(dataset);
  o.precision = trained::calibrated_precision(o.source(), form.kept), o.device = "auto";
  auto engine = o.load(o.set.sequence);
  form.input_scales = trained::calibrated_scales(*engine, batches, std::uint64_t(o.calibration));
  // A layer whose shape keeps it from 8 bits has no scale, so its weight stays values.
  for (const Parameter* p : engine->parameters.list())
    if (p->path.starts_with("layers.") && p->shape.rank == 2 && p->role != ParameterRole::router && !form.input_scales.contains(p->path) &&
        !form.keeps(p->path))
      form.kept.push_back(p->path);
  return engine;
}

// One file for llama.cpp.
ExitCode export_gguf(Options& o) {
  if (o.calibration > 0) throw ConfigError(format("--calibration: {} has no scales of activations; leave it out", o.dtype));
  if (std::error_code ignored; std::filesystem::is_directory(o.output, ignored))
    throw ConfigError(
        format("--output {}: is a folder, and {} is one file; name a file, such as model.gguf", printable(o.output), o.dtype));
  if (std::error_code ignored; !o.force && std::filesystem::exists(std::filesystem::symlink_status(o.output, ignored)))
    throw ConfigError(format("--output {}: is there already; give --force to replace it, or name another file", printable(o.output)));
  const models::Companions& companions = o.source().companions;
  models::require_gguf(o.source().shape, companions);
  const auto engine = o.load(1);
  train::save_gguf(*engine, o.output, models::gguf_type(o.dtype), companions);
  const std::int64_t parameters = engine->parameters.count() - o.source().shape.padding();
  output::print("{}: {} parameters as {}, of {}\n", printable(o.output), grouped(parameters), o.dtype, printable(o.source().folder));
  return ExitCode::done;
}

ExitCode export_model(Options& o, const std::vector<std::string>& given) {
  if (o.dtype.starts_with("gguf-")) return export_gguf(o);
  models::require_export_folder(o.output, o.force ? models::Existing::replace : models::Existing::refuse);
  require_other_folder(o.output, o.source());
  const models::Companions& companions = o.source().companions;
  models::WeightForm form = o.dtype == "input" ? models::weights_dtype(companions) : models::WeightForm::named(o.dtype);
  models::require_form(o.source().shape, form);
  const RunLayers layers = layers_of_run(o.source(), form);
  if (form.has_codes()) form.kept = layers.kept;
  if (form.has_rounded_scales()) form.rule = layers.rule ? *layers.rule : rule_of_source(o.source());
  const auto engine = load(o, form, given);
  train::save_weights(*engine, o.output, form, companions);
  const std::int64_t parameters = engine->parameters.count() - o.source().shape.padding();
  output::print("{}: {} parameters as {}, of {}\n", printable(o.output), grouped(parameters), form.name(), printable(o.source().folder));
  if (form.has_codes()) print_codes(o.source(), *engine, form, layers);
  return ExitCode::done;
}

}  // namespace

void add_export(Program& program) {
  auto o = std::make_shared<Options>();
  Command command =
      program.command("export", "Write a model as a Hugging Face folder, or as a file for llama.cpp",
                      "  octet export runs/current --output exported --dtype bf16\n"
                      "  octet export runs/current --step 400 --output exported    a checkpoint of the run\n"
                      "  octet export runs/block128 --output served --dtype fp8-block128    the codes of the run, for servers\n"
                      "  octet export model --output served --dtype fp8-tensor --calibration 16 --data data/docs    static scales\n"
                      "  octet export model --output model.gguf --dtype gguf-q8_0",
                      Result::file);
  o->add_source_to(command);
  command.option("-o,--output", o->output, "folder to create, or file for gguf", {}, true);
  std::vector<std::string> forms = models::WeightForm::names();
  for (std::string& form : models::gguf_names()) forms.push_back(std::move(form));
  std::vector<std::string> dtypes{"input"};
  dtypes.insert(dtypes.end(), forms.begin(), forms.end());
  command.option("--dtype", o->dtype, joined(forms) + "; input: that of the model it began from, or f32", {.one_of = dtypes});
  command.option(
      "--calibration", o->calibration,
      "fp8-tensor: static scales of activations, from their maxima in so many batches; 0: those of a run that keeps some, or dynamic",
      {.at_least = 0});
  o->set.add_to(command);
  command.flag("--force", o->force, "replace a model that is in the folder; never the one that this one is made of");
  command.run([o, command] {
    o->precision.recipe = "fp32", o->device = "cpu";
    return export_model(*o, command.given());
  });
}

}  // namespace octet::cli
