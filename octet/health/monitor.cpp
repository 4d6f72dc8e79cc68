#include "octet/health/monitor.hpp"

#include <type_traits>

#include "octet/health/batches.hpp"
#include "octet/health/frozen_scales.hpp"
#include "octet/health/loss.hpp"
#include "octet/health/loss_level.hpp"
#include "octet/health/machine.hpp"
#include "octet/health/maxima.hpp"
#include "octet/health/nonfinite.hpp"
#include "octet/health/norms.hpp"
#include "octet/health/ranges.hpp"
#include "octet/health/routers.hpp"
#include "octet/health/scales.hpp"
#include "octet/health/shared_scales.hpp"

namespace octet::health {

Monitor::Monitor(const AlertsConfig& config, const Subject& subject) : enabled_(config.enabled) {
  parts_.push_back({"nonfinite", std::make_unique<NonfiniteRules>(config, subject)});
  parts_.push_back({"loss", std::make_unique<LossRules>(config, subject)});
  parts_.push_back({"loss_level", std::make_unique<LossLevelRules>(config)});
  parts_.push_back({"batches", std::make_unique<BatchRules>(config)});
  parts_.push_back({"norms", std::make_unique<NormRules>(config)});
  parts_.push_back({"scales", std::make_unique<ScaleRules>(config, subject)});
  parts_.push_back({"frozen_scales", std::make_unique<FrozenScaleRules>(config, subject)});
  parts_.push_back({"maxima", std::make_unique<MaximaRules>(config, subject)});
  parts_.push_back({"ranges", std::make_unique<RangeRules>(config, subject)});
  parts_.push_back({"shared_scales", std::make_unique<SharedScaleRules>(config, subject)});
  parts_.push_back({"routers", std::make_unique<RouterRules>(config)});
  parts_.push_back({"machine", std::make_unique<MachineRules>(config, subject)});
}

std::vector<telemetry::AlertEvent> Monitor::take(const telemetry::Event& event) {
  if (!enabled_) return {};
  return std::visit(
      [&](const auto& e) -> std::vector<telemetry::AlertEvent> {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, telemetry::AlertEvent> || std::is_same_v<E, telemetry::RecoveryEvent> ||
                      std::is_same_v<E, telemetry::EndEvent>) {
          return {};
        } else {
          Alerts out(e.step, e.time);
          for (const Part& part : parts_) part.rules->take(e, out);
          return out.take();
        }
      },
      event);
}

void Monitor::visit_state(StateVisitor& v) {
  for (const Part& part : parts_)
    if (v.has(part.name)) v.section(part.name, *part.rules);
}

}  // namespace octet::health
