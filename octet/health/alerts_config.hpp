#pragma once

#include <string>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/health/alert_rule.hpp"

namespace octet::health {

/// Which rules watch a run, and who is informed. Has a threshold per rule, each a key of its name.
struct AlertsConfig {
  bool enabled = true;
  std::vector<std::string> command;  // a program and its arguments; empty: none
  double command_seconds = 10;       // after which it is killed

  AlertsConfig();
  void fields(config::FieldVisitor&);
  double threshold(const AlertRule&) const;
  /// For tests and callers that set one. Throws ContractError for a name that no rule has.
  void set_threshold(std::string_view rule, double threshold);

 private:
  std::vector<double> thresholds_;  // in the order of alert_rules()
};

}  // namespace octet::health
