#pragma once

#include "octet/data/eval_batches.hpp"
#include "octet/train/engine.hpp"

namespace octet::train {

struct Evaluation {
  double loss = 0;  // mean cross-entropy in nats
  std::int64_t tokens = 0;
};

/// The mean loss over all batches, in the engine's precision; changes no state.
Evaluation evaluate(Engine&, const data::EvalBatches&);
/// The same for one batch.
Evaluation evaluate_batch(Engine&, const data::Batch&);

/// Lets quantizers that need past maxima see `batches` once, without a backward: for evaluating a model under a recipe it was not
/// trained with.
void calibrate(Engine&, const data::EvalBatches& batches, std::uint64_t count);

}  // namespace octet::train
