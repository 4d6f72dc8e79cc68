#include "octet/train/run/engine/run_engine.hpp"

#include "octet/train/run/config/final_part.hpp"
#include "octet/train/run/dry_run/planned_work.hpp"

namespace octet::train {

void require_final_part(const RunConfig& c, const EnginePlacement& placement) {
  if (!scaling::has_final_part(c.recipe)) return;
  const EngineConfig config = engine_config(c, c.recipe.final_recipe);
  const DryRun dry = placement.dry_run(config);
  require_native(dry, config.precision);
  require_memory(dry, placement.available_bytes(), c.train);
}

RunEngine::RunEngine(const EnginePlacement& placement, const EngineConfig& config, DryRun dry)
    : placement_(placement),
      dry_(std::move(dry)),
      engine_(std::make_unique<Engine>(config, placement.device, placement.target, &placement.ranks)) {}

telemetry::StepWork RunEngine::planned_work() const { return promised_part(dry_.step); }

bool RunEngine::calibrate(data::Loader& loader, bool (*stopped)()) {
  if (engine_->precision.calibration_passes() == 0) return true;
  const std::uint64_t sample = loader.position();
  const bool whole = runner_->calibrate(
      placement_.accumulate, [&] { return loader.next(); }, stopped);
  loader.seek(sample);
  return whole;
}

void RunEngine::replace(const EngineConfig& config, DryRun dry) {
  runner_.reset();
  engine_.reset();
  engine_ = std::make_unique<Engine>(config, placement_.device, placement_.target, &placement_.ranks);
  dry_ = std::move(dry);
}

}  // namespace octet::train
