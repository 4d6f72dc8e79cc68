#include <cmath>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/trained_model.hpp"
#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/evaluate.hpp"

namespace octet::cli {
namespace {

struct Options : TrainedModel {
  std::string data;
  std::int64_t sequence = 256, batch = 4, tokens = 0, calibration = 4;
  double fraction = 0.01;
};

ExitCode evaluate_model(const Options& o) {
  const data::Dataset dataset(o.data);
  const data::Windows windows(dataset, data::split_documents(dataset, o.fraction).held_out, o.sequence, "held-out");
  const data::EvalBatches batches(windows, o.batch, o.tokens);
  const std::int64_t vocabulary = models::read_hugging_face_shape(o.weights()).vocabulary;
  const bool known = data::require_same_tokenizer(dataset, o.weights(), vocabulary);
  const auto engine = o.load(o.sequence);
  data::require_vocabulary(dataset, vocabulary);
  if (!known) log::info("the tokenizer of {} is unknown: it has no {}", printable(o.weights()), tokenizer::file_name);
  // Scales that follow past maxima see some batches first; the others ignore them.
  train::calibrate(*engine, batches, std::uint64_t(o.calibration));
  const train::Evaluation e = train::evaluate(*engine, batches);
  output::print("{}{}: loss {}, perplexity {}, {} tokens\n", o.precision.recipe, o.quantize_residual ? " with its residual stream" : "",
                fixed(e.loss, 6), fixed(std::exp(e.loss), 4), grouped(e.tokens));
  return ExitCode::done;
}

}  // namespace

void add_eval(Program& program) {
  auto o = std::make_shared<Options>();
  Command command =
      program.command("eval", "Evaluate a model under any recipe, including one it was not trained with",
                      "  octet eval runs/bf16 --data data/docs\n"
                      "  octet eval runs/bf16 --data data/docs --recipe global --residual    a BF16 model in FP8, one scale per model\n"
                      "  octet eval runs/bf16 --data data/docs --recipe current --residual   the same, per-tensor scales");
  o->add_to(command);
  command.option("--data", o->data, "token folder; its held-out part is read", {}, true);
  command.option("--sequence", o->sequence, "tokens per sequence", {.at_least = 1});
  command.option("--batch", o->batch, "sequences per batch", {.at_least = 1});
  command.option("--tokens", o->tokens, "held-out tokens to evaluate on; 0: all", {.at_least = 0});
  command.option("--held-out", o->fraction, "share of the documents to evaluate on, chosen by a hash of their number",
                 {.at_least = 0, .at_most = 0.999});
  command.flag("--residual", o->quantize_residual, "quantize the residual stream too");
  command.option("--calibration", o->calibration, "batches that initialize scales with a history", {.at_least = 0});
  command.run([o] { return evaluate_model(*o); });
}

}  // namespace octet::cli
