#include "octet/health/alerts_config.hpp"

#include "octet/base/text.hpp"

namespace octet::health {
namespace {

std::size_t index_of(const AlertRule& r) { return std::size_t(&r - alert_rules().data()); }

}  // namespace

AlertsConfig::AlertsConfig() {
  for (const AlertRule& r : alert_rules()) thresholds_.push_back(r.threshold);
}

double AlertsConfig::threshold(const AlertRule& r) const { return thresholds_[index_of(r)]; }

void AlertsConfig::set_threshold(std::string_view name, double threshold) { thresholds_[index_of(rule(name))] = threshold; }

void AlertsConfig::fields(config::FieldVisitor& v) {
  v.field("enabled", enabled, "watch the run by the rules below; docs/health.md explains them");
  v.field("command", command,
          "program and arguments, started for each alert with the event as JSON on its standard input; empty: none. No shell reads it");
  v.field("command_seconds", command_seconds, "time after which the program is killed; the end of a run waits for it as long",
          {.above = 0, .at_most = 3600});
  for (const AlertRule& r : alert_rules())
    v.field(r.name, thresholds_[index_of(r)], format("{}; 0: no alert", r.limit), {.at_least = 0, .at_most = 1e9});
  v.idle("command_seconds", command.empty(), "alerts.command is not set");
  v.idle("command", !enabled, "alerts.enabled = false");
}

}  // namespace octet::health
