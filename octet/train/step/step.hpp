#pragma once

#include <functional>
#include <span>

#include "octet/data/windows.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// A batch of the loader on the engine's device, in a region.
TokenBatch upload(Stream&, const data::Batch&, Region);

struct StepOptions {
  double learning_rate = 0;
  bool measure = false;         // also SQNR of every quantizer and the norm of all parameters
  bool (*stopped)() = nullptr;  // asked between micro-batches: whether to give this step up
};

/// One optimizer step: forward and backward of every micro-batch, gradient clipping, update. What it showed (loss, norm, skip flag,
/// maxima, health) stays on the device until finish_step(). The loss is the mean over all tokens of the step.
/// False when it was stopped before its last micro-batch began: the engine is then as it was before the step.
bool run_step(Engine&, std::span<const data::Batch> micro_batches, const StepOptions&);

/// Makes the next step's scales from this step's maxima, quantizes the new weights, clears gradients and sums.
void finish_step(Engine&);

/// Before the first step of a new run: passes over its micro-batches, as many as the recipe wants, from which scales begin that come from
/// past maxima. `next` gives these in their order, of one shape; of the step's `accumulate` only those that are used are asked for. Leaves
/// no gradient, loss or count behind. prepare() must have been called. `stopped` is asked before each pass whether to give up: then false,
/// and scales come from some passes only.
bool calibrate(Engine&, std::int64_t accumulate, const std::function<data::Batch()>& next, bool (*stopped)() = nullptr);

/// Quantizes the weights for the first time: after initializing or loading them, before the first run_step().
void prepare(Engine&);

}  // namespace octet::train
