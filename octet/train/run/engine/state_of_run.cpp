#include "octet/train/run/engine/state_of_run.hpp"

namespace octet::train {

void StateOfRun::visit_state(StateVisitor& v) {
  v.section("engine", engine.engine());
  v.section("data", loader);
  recorder.visit_state(v);
  v.section("run", at);
}

void StateOfRun::visit_rolled_back(StateVisitor& v) {
  v.section("engine", engine.engine());
  v.section("data", loader);
  Recorder::keep_state(v);
  v.section("run", at);
}

}  // namespace octet::train
