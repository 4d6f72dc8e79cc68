#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// scale_frozen: a scale that does not follow its tensor's maxima. A scale from this step's maximum, or from those before, has room for the
/// smaller one of this step's maximum and the last one:
///   min(max |x| of this step, of the last step) * scale <= the format's largest value (8/7 of it for scales of OCP MX)
/// A skipped step leaves its maxima out of a history, so the step after it is not compared.
class FrozenScaleRules final : public Family {
 public:
  FrozenScaleRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::ScalesEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  const std::vector<telemetry::QuantizerFacts> quantizers_;
  std::vector<double> largest_;  // value of each tensor's format; NaN for one without scales
  Alarm frozen_;
  std::vector<double> last_;    // maxima of the last step; 0: not known
  std::vector<double> beyond_;  // steps in a row in which the scale had no room
};

}  // namespace octet::health
