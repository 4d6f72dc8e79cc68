#include "octet/train/run/engine/run_engine.hpp"

#include "octet/machine/machine.hpp"
#include "octet/train/run/config/final_part.hpp"
#include "octet/train/run/dry_run/planned_work.hpp"

namespace octet::train {

std::size_t EnginePlace::available_bytes() const {
  return machine::available_bytes(device) / std::size_t(device == Device::cpu ? ranks_here : 1);
}

void require_final_part(const RunConfig& c, const EnginePlace& place) {
  if (!scaling::has_final_part(c.recipe)) return;
  const EngineConfig config = engine_config(c, c.recipe.final_recipe);
  const DryRun dry = place.dry_run(config);
  require_native(dry, config.precision);
  require_memory(dry, place.available_bytes(), c.train);
}

RunEngine::RunEngine(const EnginePlace& place, const EngineConfig& config, DryRun dry)
    : place_(place), dry_(std::move(dry)), engine_(std::make_unique<Engine>(config, place.device, place.target, &place.ranks)) {}

telemetry::StepWork RunEngine::planned_work() const { return promised_part(dry_.step); }

bool RunEngine::calibrate(data::Loader& loader, bool (*stopped)()) {
  if (engine_->precision.calibration_passes() == 0) return true;
  const std::uint64_t sample = loader.position();
  const bool whole = runner_->calibrate(
      place_.accumulate, [&] { return loader.next(); }, stopped);
  loader.seek(sample);
  return whole;
}

void RunEngine::replace(const EngineConfig& config, DryRun dry) {
  runner_.reset();
  engine_.reset();
  engine_ = std::make_unique<Engine>(config, place_.device, place_.target, &place_.ranks);
  dry_ = std::move(dry);
}

}  // namespace octet::train
