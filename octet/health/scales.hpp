#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// scale_drop and scale_rise, by the scale that each tensor's maximum allows, which is inversely proportional to it. Scales themselves lag
/// behind a history, and a block of zeros may have any scale. scale_drop names the first tensor of the step: an outlier reaches those
/// behind it, sometimes by a larger factor.
class ScaleRules final : public Family {
 public:
  ScaleRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::ScalesEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  std::vector<double> earlier() const;
  void report(const Alarm&, std::size_t tensor, double before, const telemetry::ScalesEvent&, const char* effect, Alerts&);

  const std::vector<telemetry::QuantizerFacts> quantizers_;
  const std::vector<std::size_t> order_;  // of a step
  Alarm drop_, rise_;
  std::size_t length_;         // events in the ring
  std::vector<double> ring_;   // maxima [length, tensors], of which the row of event i is i mod length
  std::vector<double> small_;  // events in a row in which the tensor's maximum was small
  std::int64_t seen_ = 0;
};

}  // namespace octet::health
