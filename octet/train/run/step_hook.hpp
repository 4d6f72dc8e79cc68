#pragma once

#include <vector>

#include "octet/train/run/open_run.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {

/// The inputs of a step that is about to run.
struct StepInputs {
  std::int64_t step = 0;                    // from 1 on
  Engine& engine;                           // between two steps
  std::vector<data::Batch>& micro_batches;  // of this rank; their number and shapes are fixed
  StepOptions& options;                     // its learning rate, its listener
};

/// A step whose update is done. Its gradients and results are still in the engine, and must not change.
struct StepResults {
  std::int64_t step = 0;
  Engine& engine;
  OpenRun& run;
};

/// Sees a Trainer's run at its seams, and may change inputs there: the first weights, batches from elsewhere, a schedule of one's own,
/// measurements of tensors (Stream::set_observer) or between parts of the step (StepOptions::listener). Each function does nothing unless
/// overridden. Several ranks have a hook each, and may exchange values in any of its functions but describe(). A run is bit-identical to
/// its repetition if its hook is.
class StepHook {
 public:
  virtual ~StepHook() = default;
  /// Adds to the facts of run.json. A resumed run keeps those that it has.
  virtual void describe(telemetry::RunFacts&) {}
  /// The weights of a run without a checkpoint have their first values.
  virtual void begin(Engine&) {}
  /// Before each step.
  virtual void before(const StepInputs&) {}
  /// Whether before() may change weights: the step then waits for copies of them that a checkpoint makes.
  virtual bool changes_weights() const { return true; }
  virtual void after(const StepResults&) {}
  /// After each step, which is in the record now: whether the run shall stop and save its state, as after a signal. Of several ranks each
  /// is asked, and they stop together, one step later.
  virtual bool stops_after(const telemetry::StepEvent&) { return false; }
};

/// The hook of a run without one.
struct NoHook final : StepHook {
  bool changes_weights() const override { return false; }
};

}  // namespace octet::train
