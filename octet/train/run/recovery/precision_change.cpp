#include "octet/train/run/recovery/precision_change.hpp"

#include <algorithm>
#include <new>

#include "octet/parallel/host_values.hpp"
#include "octet/train/checkpoint/state_copy.hpp"
#include "octet/train/run/engine/layer_change.hpp"

namespace octet::train {

PrecisionChange::PrecisionChange(const RunConfig& config, StateOfRun& run, RunCheckpoints& checkpoints)
    : config_(config), run_(run), checkpoints_(checkpoints) {}

std::string PrecisionChange::take_over(const EngineConfig& config) {
  Engine& now = run_.engine.engine();
  std::optional<StateCopy> values;
  std::vector<scaling::QuantizerState> quantizers;
  LayerChange change;
  try {
    values = StateCopy::of(now.stream, [&](StateVisitor& v) { now.visit_values(v); });
    quantizers = now.precision.quantizer_states(now.stream);
    change = layer_change(config, config_, run_.engine);
  } catch (const std::bad_alloc&) {
    change.obstacle = "there is no memory for a copy of the run's state";
  }
  for (const std::string& obstacle : parallel::gathered(now.stream, run_.engine.place().ranks, change.obstacle))
    if (!obstacle.empty()) return obstacle;
  replace(config, std::move(change.dry));
  Engine& other = run_.engine.engine();
  values->restore(other.stream, [&](StateVisitor& v) { other.visit_values(v); });
  const int without_past = other.precision.set_quantizer_states(other.stream, quantizers);
  run_.engine.begin_steps();
  if (without_past == 0 || other.precision.calibration_passes() == 0) return "";
  clear(other.stream, other.optimizer->skip());
  run_.engine.calibrate(run_.loader);
  return "";
}

void PrecisionChange::replace(const EngineConfig& config, DryRun dry) {
  checkpoints_.wait_copied();
  run_.engine.replace(config, std::move(dry));
  run_.recorder.use(run_.engine.engine().precision.slots().slots());
}

}  // namespace octet::train
