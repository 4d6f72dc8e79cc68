#include <algorithm>
#include <cmath>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/eval_task.hpp"
#include "octet/cli/logits_file.hpp"
#include "octet/cli/model_options.hpp"
#include "octet/config/read.hpp"
#include "octet/data/dataset.hpp"
#include "octet/cli/rank_run.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/ranks/alike.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/weights.hpp"
#include "octet/trained/eval_set.hpp"
#include "octet/trained/static_scales.hpp"

namespace octet::cli {
namespace {

struct Options : ModelOptions {
  TextOptions set;
  EvalTask task;
  std::vector<std::string> keys;  // --set
  std::int64_t calibration = 4;
  std::string logits, ids;
  bool frozen = false;
};

/// The keys of the section [recipe], as --set names them.
struct RecipeKeys {
  scaling::PrecisionConfig& recipe;
  void fields(config::FieldVisitor& v) { v.section("recipe", recipe, "in which precision its linear layers run"); }
};

void set_recipe_keys(Options& o) {
  config::Origins origins;
  RecipeKeys keys{o.precision};
  for (const std::string& assignment : o.keys) config::apply_override(keys, assignment, origins);
}

// With --frozen the model decides the precision, and the stored scales take the place of those of the data.
void require_frozen_alone(const std::vector<std::string>& given) {
  for (const char* option : {"--recipe", "--format", "--head", "--set", "--residual", "--calibration"})
    if (std::ranges::find(given, option) != given.end())
      throw ConfigError(
          format("--frozen evaluates the stored scales in the precision of the model, and {} asks for another; leave one out", option));
}

std::unique_ptr<train::Engine> load(Options& o, std::int64_t sequence, comm::Communicator* ranks = nullptr) {
  if (o.frozen) o.precision = trained::frozen_precision(o.source());
  auto engine = o.load(sequence, ranks);
  if (o.frozen) trained::load_stored_scales(o.source(), *engine);
  return engine;
}

// --ids, or the first sequence of the text.
TokenRows token_rows(Options& o, const std::vector<std::string>& given) {
  if (!o.ids.empty()) return read_token_rows(o.ids);
  o.set.complete(o.folder, given);
  o.set.batch = 1;
  const data::Dataset dataset(o.set.token_folder(o.source().companions_folder), data::Verify::everything, o.set.key());
  const data::Batch batch = o.set.batches(dataset)[0];
  return {1, batch.length, {batch.inputs.begin(), batch.inputs.end()}};
}

ExitCode store_logits(Options& o, const std::vector<std::string>& given) {
  const TokenRows tokens = token_rows(o, given);
  const auto engine = load(o, tokens.length);
  write_logits(*engine, tokens, o.logits);
  output::print("{}: logits of {} x {} tokens\n", printable(o.logits), grouped(tokens.rows), grouped(tokens.length));
  return ExitCode::done;
}

// A rank with another model or text would put another loss into the mean.
void require_alike(train::Engine& engine, const data::Dataset& dataset) {
  if (engine.ranks().size() == 1) return;
  std::vector<parallel::Fact> facts = train::facts_of_program();
  facts.push_back({"dataset", to_text(dataset.fingerprint())});
  facts.push_back({"checksum of the weights", to_text(train::checksum_of_weights(engine))});
  parallel::require_same(engine.stream, engine.ranks(), facts);
}

// Each rank has a share of the batches.
ExitCode evaluate_on(Options o, const std::vector<std::string>& given, comm::Communicator& ranks) {
  if (o.task) return o.task.run(o, ranks);
  if (!o.logits.empty()) return ranks.rank() == 0 ? store_logits(o, given) : ExitCode::done;
  std::optional<data::Dataset> read;
  const Device device = machine::device_named(o.device);
  parallel::long_work(device, ranks, [&] {
    o.source();  // a model that is none is refused first
    o.set.complete(o.folder, given);
  });
  const std::string tokens = parallel::text_of_first(device, ranks, [&] { return o.set.token_folder(o.source().companions_folder); });
  parallel::long_work(device, ranks, [&] { read.emplace(tokens, data::Verify::everything, o.set.key()); });
  const trained::ModelSource& model = o.source();
  const data::Dataset& dataset = *read;
  const data::EvalBatches batches = o.set.batches(dataset);
  const bool known = data::require_same_tokenizer(dataset, model.companions_folder, model.shape.vocabulary);
  const auto engine = load(o, o.set.sequence, &ranks);
  require_alike(*engine, dataset);
  data::require_vocabulary(dataset, model.shape.vocabulary);
  if (!known) log::info("the tokenizer of {} is unknown: it has no {}", printable(model.folder), tokenizer::file_name);
  const trained::RecipeLayers layers = trained::layers_of(engine->precision);
  const bool formats = scaling::names_eight_bits(o.precision);
  // Scales that follow past maxima see some batches first; the others ignore them.
  if (!o.frozen) train::calibrate(*engine, batches, std::uint64_t(o.calibration));
  const train::Evaluation e = train::evaluate(*engine, batches);
  trained::require_finite(*engine, batches, e, model.folder);
  output::print("{}{}: loss {}, perplexity {}, {} tokens in sequences of {}{}", o.frozen ? "stored scales" : o.precision.recipe,
                o.quantize_residual ? " with its residual stream" : "", fixed(e.loss, 6), fixed(std::exp(e.loss), 4), grouped(e.tokens),
                o.set.sequence, o.set.document_mask ? ", documents masked" : "");
  if (formats)
    output::print("; {} of {} layers in {}{}\n{}", layers.count - layers.others.size(), layers.count,
                  o.frozen ? "8 bits" : o.precision.recipe, layers.others.empty() ? "" : ", others:", train::plan_text(layers.others));
  else output::print("\n");
  return ExitCode::done;
}

ExitCode evaluate_model(Options& o, const std::vector<std::string>& given) {
  if (!o.ids.empty() && o.logits.empty()) throw ConfigError("--ids names the tokens of --logits; give --logits FILE too, or --data alone");
  if (!o.task && !o.task.answers.empty()) throw ConfigError("--answers are those of --task; give --task FILE, too");
  if (o.task && (!o.logits.empty() || !o.set.data.empty())) throw ConfigError("--task has texts of its own; leave out --data and --logits");
  if (o.frozen) require_frozen_alone(given);
  set_recipe_keys(o);
  machine::choose_own_gpu();
  return run_on_ranks({.device = o.device},
                      [&](comm::Communicator& ranks, const machine::RankPlacement&) { return evaluate_on(o, given, ranks); });
}

}  // namespace

void add_eval(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command(
      "eval", "Evaluate a model under any recipe, including one it was not trained with",
      "  octet eval runs/bf16                                                as the run did: the same text and length\n"
      "  octet eval runs/bf16 --data data/docs --all                         on all documents of another dataset\n"
      "  octet eval runs/bf16 --recipe global --residual                     a BF16 model in FP8, one scale per model\n"
      "  octet eval runs/bf16 --recipe current --residual                    the same, per-tensor scales\n"
      "  octet eval runs/bf16 --recipe mxfp8 --set recipe.keep_bf16=layers.0.*  with any key of recipe\n"
      "  octet eval model --task hellaswag.jsonl --recipe current            multiple choice by log-likelihood\n"
      "  octet eval served --frozen --data data/docs                         the stored scales of a folder or a run\n"
      "  octet eval model --logits logits.safetensors --ids ids.safetensors --recipe fp32    to compare with another program");
  o->add_to(command);
  o->set.add_to(command);
  o->task.add_to(command);
  command.flag("--residual", o->quantize_residual, "quantize the residual stream too");
  command.flag("--frozen", o->frozen, "use the stored scales of weights and activations, and measure none");
  command.option("--calibration", o->calibration, "batches that initialize scales with a history", {.at_least = 0});
  command.option("--set", o->keys, "one key of the configuration's section recipe, such as recipe.last=1; may be repeated");
  command.option("--logits", o->logits,
                 "write the logits of the first sequence, or of --ids, to this safetensors file instead, and print no loss");
  command.option("--ids", o->ids, "safetensors file with a tensor \"ids\" [rows, length]: the tokens of --logits");
  command.run([o, command] { return evaluate_model(*o, command.given()); });
}

}  // namespace octet::cli
