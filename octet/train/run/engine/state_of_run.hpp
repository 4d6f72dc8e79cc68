#pragma once

#include "octet/train/run/record/progress.hpp"
#include "octet/train/run/record/recorder.hpp"
#include "octet/train/run/engine/run_engine.hpp"

namespace octet::train {

/// The variables of a run that change from step to step, which a checkpoint has.
struct StateOfRun {
  RunEngine& engine;
  data::Loader& loader;
  Recorder& recorder;
  Progress& at;

  void visit_state(StateVisitor&);
  /// The part that returns to a checkpoint in the middle of the run: the record is never cut, and decisions about it continue.
  void visit_rolled_back(StateVisitor&);
};

}  // namespace octet::train
