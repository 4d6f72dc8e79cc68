#pragma once

#include "octet/train/run/record/run_end.hpp"
#include "octet/train/run/engine/state_of_run.hpp"

namespace octet::train {

/// Whether the weights and results of a run are finite. One that is not is an incident in the record, and the reason why the run diverged.
class Finiteness {
 public:
  Finiteness(StateOfRun& run, RunEnd& end) : run_(run), end_(end) {}

  bool of_weights();
  /// Also of the last evaluation.
  bool of_result();

 private:
  bool tell();

  StateOfRun& run_;
  RunEnd& end_;
};

}  // namespace octet::train
