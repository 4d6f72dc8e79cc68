#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// grad_norm_spike, grad_norm_growth, param_norm_growth. Skipped steps do not count; one that exceeded a limit of
/// recovery can be a spike.
class NormRules final : public Family {
 public:
  explicit NormRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void spike(const telemetry::StepEvent&, Alerts&);
  void growth(double norm, Alerts&);
  void parameters(double norm, Alerts&);

  Alarm spike_, growth_, parameters_;
  Window norms_, block_, blocks_, parameter_norms_;
};

}  // namespace octet::health
