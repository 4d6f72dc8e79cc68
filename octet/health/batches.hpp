#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// one_token: the data of a step, independent of its loss.
class BatchRules final : public Family {
 public:
  explicit BatchRules(const AlertsConfig& config) : one_token_("one_token", config) {}
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor& v) override { v.section("one_token", one_token_); }

 private:
  Alarm one_token_;
};

}  // namespace octet::health
