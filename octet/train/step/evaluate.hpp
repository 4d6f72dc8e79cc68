#pragma once

#include "octet/data/eval_batches.hpp"
#include "octet/train/step/preferences.hpp"

namespace octet::train {

struct Evaluation {
  double loss = 0;                             // mean cross-entropy in nats, or mean loss of pairs
  std::int64_t tokens = 0;                     // or pairs
  bool whole = true;                           // false: stopped early, and of no use
  telemetry::PreferenceFigures preferences{};  // of pairs
};

/// The mean loss over all batches, in the engine's precision; changes no state. `stopped` is asked between batches whether to give up.
Evaluation evaluate(Engine&, const data::EvalBatches&, bool (*stopped)() = nullptr, const PairReferences& = {});
/// The same for one batch.
Evaluation evaluate_batch(Engine&, const data::Batch&);

/// Lets quantizers that need past maxima see `batches` once, without a backward: for evaluating a model under a recipe it was not
/// trained with. Scales follow the largest maxima of all these batches, so that a batch in which a bad scale flushed everything cannot
/// raise the scale of the next. Returns those maxima, by slot: of recipes whose scales come from the data they are those of the batches.
std::vector<float> calibrate(Engine&, const data::EvalBatches& batches, std::uint64_t count);

}  // namespace octet::train
