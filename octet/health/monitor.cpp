#include "octet/health/monitor.hpp"

#include <type_traits>

#include "octet/health/families.hpp"

namespace octet::health {

Monitor::Monitor(const AlertsConfig& config, const Subject& subject) : enabled_(config.enabled) {
  parts_.push_back({"nonfinite", nonfinite_rules(config, subject)});
  parts_.push_back({"loss", loss_rules(config, subject)});
  parts_.push_back({"loss_level", loss_level_rules(config, subject)});
  parts_.push_back({"batches", batch_rules(config, subject)});
  parts_.push_back({"norms", norm_rules(config, subject)});
  parts_.push_back({"scales", scale_rules(config, subject)});
  parts_.push_back({"frozen_scales", frozen_scale_rules(config, subject)});
  parts_.push_back({"maxima", maxima_rules(config, subject)});
  parts_.push_back({"ranges", range_rules(config, subject)});
  parts_.push_back({"shared_scales", shared_scale_rules(config, subject)});
  parts_.push_back({"routers", router_rules(config, subject)});
  parts_.push_back({"gpus", gpu_rules(config, subject)});
  parts_.push_back({"machine", machine_rules(config, subject)});
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
          for (const WatchedFamily& part : parts_) part.rules->take(e, out);
          return out.take();
        }
      },
      event);
}

void Monitor::visit_state(StateVisitor& v) {
  for (const WatchedFamily& part : parts_)
    if (v.has(part.name)) v.section(part.name, *part.rules);
}

}  // namespace octet::health
