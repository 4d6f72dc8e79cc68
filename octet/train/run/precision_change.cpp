#include "octet/train/run/precision_change.hpp"

#include <algorithm>
#include <new>

#include "octet/parallel/host_values.hpp"
#include "octet/train/checkpoint/state_copy.hpp"
#include "octet/train/run/layer_change.hpp"

namespace octet::train {
namespace {

// The state of an engine without that of its quantizers.
struct Values {
  Engine& engine;
  void visit_state(StateVisitor& v) {
    engine.visit_values(v);
    v.unused("quantizers");
  }
};

}  // namespace

PrecisionChange::PrecisionChange(const RunConfig& config, RunEngine& run, data::Loader& loader, Recorder& recorder,
                                 RunCheckpoints& checkpoints)
    : config_(config), run_(run), loader_(loader), recorder_(recorder), checkpoints_(checkpoints) {}

std::string PrecisionChange::take_over(const EngineConfig& config) {
  Engine& now = run_.engine();
  std::optional<StateCopy> values;
  std::vector<scaling::QuantizerState> quantizers;
  LayerChange change;
  try {
    values = StateCopy::of(now.stream, [&](StateVisitor& v) { now.visit_values(v); });
    quantizers = now.precision.quantizer_states(now.stream);
    change = layer_change(config, config_, run_);
  } catch (const std::bad_alloc&) {
    change.obstacle = "there is no memory for a copy of the run's state";
  }
  for (const std::string& obstacle : parallel::gathered(now.stream, run_.place().ranks, change.obstacle))
    if (!obstacle.empty()) return obstacle;
  replace(config, std::move(change.dry));
  Engine& other = run_.engine();
  values->restore(other.stream, [&](StateVisitor& v) { other.visit_values(v); });
  begin_quantizers(quantizers);
  return "";
}

// Those without a past are calibrated.
void PrecisionChange::begin_quantizers(const std::vector<scaling::QuantizerState>& before) {
  Engine& engine = run_.engine();
  const int without_past = engine.precision.set_quantizer_states(engine.stream, before);
  run_.begin_steps();
  if (without_past == 0 || engine.precision.calibration_passes() == 0) return;
  clear(engine.stream, engine.optimizer->skip());
  run_.calibrate(loader_);
}

void PrecisionChange::take_over(const EngineConfig& config, std::int64_t step) {
  const std::string obstacle = take_over(config);
  if (obstacle.empty()) return;
  checkpoints_.save_last(step);
  const RunCheckpoints::Found found = checkpoints_.newest_before(step + 1);
  if (found.step != step)
    throw DeviceError(
        format("the engine cannot change its precision after step {}: {}; its state cannot be saved and read again either: {}", step,
               obstacle, found.why.empty() ? "its checkpoint was not written" : found.why));
  const auto quantizers = run_.engine().precision.quantizer_states(run_.engine().stream);
  replace(config);
  checkpoints_.return_to(step, [this](StateVisitor& v) {
    Values values{run_.engine()};
    v.section("engine", values);
    v.unused("data"), v.unused("run");
    Recorder::keep_state(v);
  });
  run_.engine().parameters.mark_changed();
  begin_quantizers(quantizers);
}

void PrecisionChange::replace(const EngineConfig& config, DryRun dry) {
  checkpoints_.wait_copied();
  run_.replace(config, std::move(dry));
  recorder_.use(run_.engine().precision.slots().slots());
}

}  // namespace octet::train
