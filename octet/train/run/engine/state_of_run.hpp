#pragma once

#include "octet/train/run/record/progress.hpp"
#include "octet/train/run/record/recorder.hpp"
#include "octet/train/run/engine/run_engine.hpp"
#include "octet/train/step/preferences.hpp"

namespace octet::train {

/// The variables of a run that change from step to step, which a checkpoint has.
struct StateOfRun {
  RunEngine& engine;
  data::Loader& loader;
  Recorder& recorder;
  Progress& at;
  PairReferences& references;

  void visit_state(StateVisitor& v) {
    visit(v, [&] { recorder.visit_state(v); });
  }
  /// The part that returns to a checkpoint in the middle of the run: the record is never cut, and decisions about it continue.
  void visit_rolled_back(StateVisitor& v) {
    visit(v, [&] { Recorder::keep_state(v); });
  }
  /// The part that another engine of the run can have, of which the checkpoint is that of this step.
  void visit_values(StateVisitor& v) {
    Values values{engine.engine()};
    v.section("engine", values);
    v.unused("data"), v.unused("run"), v.unused("references");
    Recorder::keep_state(v);
  }

 private:
  struct Values {
    Engine& engine;
    void visit_state(StateVisitor& v) {
      engine.visit_values(v);
      v.unused("quantizers");
    }
  };
  void visit(StateVisitor& v, const auto& visit_record) {
    v.section("engine", engine.engine());
    v.section("data", loader);
    visit_record();
    v.section("run", at);
    if (references.used()) v.section("references", references);
  }
};

}  // namespace octet::train
