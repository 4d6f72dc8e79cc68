#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// nonfinite and loss_scale_falls: steps that were skipped because of an infinity or NaN, and the loss scale that answers them.
class NonfiniteRules final : public Family {
 public:
  NonfiniteRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::HealthEvent&, Alerts&) override;
  void take(const telemetry::IncidentEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void skipped(const telemetry::StepEvent&, Alerts&);
  void loss_scale(double scale, Alerts&);

  const std::vector<telemetry::QuantizerFacts> quantizers_;
  Alarm nonfinite_, falls_;
  std::int64_t in_a_row_ = 0;
  Window scales_;
  // Of the current step, until its StepEvent.
  std::string path_, text_;
  bool scale_moved_ = false;
};

}  // namespace octet::health
