#pragma once

#include <vector>

#include "octet/train/step/step.hpp"

namespace octet::train {

/// The inputs of a step that is about to run.
struct StepInputs {
  std::int64_t step = 0;                    // from 1 on
  Engine& engine;                           // between two steps
  std::vector<data::Batch>& micro_batches;  // of this rank; their number and shapes are fixed
  StepOptions& options;                     // its learning rate, its listener
};

/// Sees the inputs of each step of a Trainer before it runs, and may change them: batches from elsewhere, a schedule of one's own,
/// measurements of tensors (Stream::set_observer) or between parts of the step (StepOptions::listener). Several ranks have a hook each.
/// A run is bit-identical to its repetition if its hook is.
class StepHook {
 public:
  virtual ~StepHook() = default;
  virtual void before(const StepInputs&) = 0;
};

}  // namespace octet::train
