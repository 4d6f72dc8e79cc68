#include "octet/train/run/recovery/precision_change.hpp"

#include <algorithm>
#include <new>

#include "octet/parallel/host_values.hpp"
#include "octet/train/checkpoint/state_copy.hpp"

namespace octet::train {

PrecisionChange::PrecisionChange(const RunConfig& config, StateOfRun& run, RunCheckpoints& checkpoints, const PrecisionNow& now)
    : config_(config), run_(run), checkpoints_(checkpoints) {
  set(now);
}

void PrecisionChange::set(const PrecisionNow& now) {
  now_ = now;
  run_.at.final_precision.on = now.recipe != config_.recipe.recipe;
}

std::string PrecisionChange::take_over(const PrecisionNow& next) {
  Engine& now = run_.engine.engine();
  std::optional<StateCopy> values;
  std::vector<scaling::QuantizerState> quantizers;
  LayerChange change;
  try {
    values = StateCopy::of(now.stream, [&](StateVisitor& v) { now.visit_values(v); });
    quantizers = now.precision.quantizer_states(now.stream);
    change = layer_change(engine_config(config_, next), config_, run_.engine);
  } catch (const std::bad_alloc&) {
    change.obstacle = "there is no memory for a copy of the run's state";
  }
  for (const std::string& obstacle : parallel::gathered(now.stream, run_.engine.placement().ranks, change.obstacle))
    if (!obstacle.empty()) return obstacle;
  replace(next, std::move(change.dry));
  Engine& other = run_.engine.engine();
  values->restore(other.stream, [&](StateVisitor& v) { other.visit_values(v); });
  begin_quantizers(quantizers);
  return "";
}

// Those without a past are calibrated.
void PrecisionChange::begin_quantizers(const std::vector<scaling::QuantizerState>& before) {
  Engine& engine = run_.engine.engine();
  const int without_past = engine.precision.set_quantizer_states(engine.stream, before);
  run_.engine.begin_steps();
  if (without_past == 0 || engine.precision.calibration_passes() == 0) return;
  clear(engine.stream, engine.optimizer->skip());
  run_.engine.calibrate(run_.loader);
}

void PrecisionChange::use_recipe(const std::string& recipe) {
  if (recipe == now_.recipe) return;
  const PrecisionNow next{recipe, now_.layers};
  if (const std::string obstacle = take_over(next); !obstacle.empty()) through_checkpoint(next, obstacle);
  run_.recorder.incident(run_.at.step, "precision",
                         format("linear layers run in {} from step {} on, as recipe.final says", recipe, run_.at.step + 1));
}

void PrecisionChange::through_checkpoint(const PrecisionNow& next, const std::string& reason) {
  const std::int64_t step = run_.at.step;
  checkpoints_.save_last(step);
  const RunCheckpoints::Found found = checkpoints_.newest_before(step + 1);
  if (found.step != step)
    throw DeviceError(
        format("the engine cannot change its precision after step {}: {}; its state cannot be saved and read again either: {}", step,
               reason, found.why.empty() ? "its checkpoint was not written" : found.why));
  const Engine& before = run_.engine.engine();
  const auto quantizers = before.precision.quantizer_states(run_.engine.engine().stream);
  replace(next);
  checkpoints_.return_to(step, [this](StateVisitor& v) { run_.visit_values(v); });
  run_.engine.engine().parameters.mark_changed();
  begin_quantizers(quantizers);
}

void PrecisionChange::replace(const PrecisionNow& next) {
  if (next != now_) replace(next, run_.engine.placement().dry_run(engine_config(config_, next)));
}

void PrecisionChange::replace(const PrecisionNow& next, DryRun dry) {
  checkpoints_.wait_copied();
  run_.engine.replace(engine_config(config_, next), std::move(dry));
  run_.recorder.use(run_.engine.engine().precision.slots().slots());
  set(next);
}

}  // namespace octet::train
