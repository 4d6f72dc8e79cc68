#pragma once

#include "octet/train/run/record/step_history.hpp"

namespace octet::train {

/// The step of the last sample of text; -1: none.
struct LastSample {
  std::int64_t step = -1;
  void visit_state(StateVisitor& v) { v.state("step", step); }
};

/// 1: linear layers run in recipe.final. A step that was stopped may have been its first one, so the step's number does not tell.
struct FinalPrecision {
  std::int64_t on = 0;
  void visit_state(StateVisitor& v) { v.count("on", on, {.most = 1}); }
};

/// How far a run has come. Its size does not depend on the number of steps.
struct Progress {
  std::int64_t step = 0, skipped = 0, skipped_in_a_row = 0, last_eval_step = -1;
  double eval_loss, train_seconds = 0, elapsed = 0;  // seconds of steps, and of the whole run up to the last checkpoint
  StepHistory losses, rates;                         // of every step that was not skipped; tokens/s of every step but the first

  LastSample last_sample;
  FinalPrecision final_precision;  // of the engine

  Progress();
  void visit_state(StateVisitor&);
};

}  // namespace octet::train
