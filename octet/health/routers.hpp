#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// expert_idle, expert_overload and router_collapse: the loads of experts, layer by layer.
class RouterRules final : public Family {
 public:
  explicit RouterRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::ExpertsEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  Alarm idle_, overload_, collapse_;
  // Measurements in a row in which some layer broke the rule; one subject per rule, since layers are known with the first event only.
  double idle_for_ = 0, overload_for_ = 0, collapse_for_ = 0;
};

}  // namespace octet::health
