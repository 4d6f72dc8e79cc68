#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "octet/health/recovery_action.hpp"
#include "octet/telemetry/event.hpp"

namespace octet::health {

/// One rule over the events of a run. The list of rules is the only place of its name, threshold and words: keys of [alerts], events and
/// docs/health.md follow from it.
struct AlertRule {
  const char* name;   // of its key alerts.<name>, and in events
  double threshold;   // default; 0 in a configuration disables the rule
  const char* limit;  // the threshold in words: help of the key
  telemetry::Severity severity;
  std::int64_t window;      // steps or measurements that it looks at
  std::int64_t rest;        // of the same, without the condition, after which it can fire again
  const char* unit;         // of both: "steps", "measurements"
  const char* explanation;  // possible causes
  const char* remedy;
  RecoveryAction first;   // of the recovery ladder that answers the alert; none for alerts of the machine and of data
  std::int64_t lead = 0;  // steps before the alert in which its cause may have begun
};

/// In the order of docs/health.md.
std::span<const AlertRule> alert_rules();
/// Throws ContractError for a name that no rule has.
const AlertRule& rule(std::string_view name);

}  // namespace octet::health
