#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// amax_stuck: a maximum that keeps its bits while weights move. Weights are left out: theirs may rest at a low learning rate.
class MaximaRules final : public Family {
 public:
  MaximaRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::ScalesEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  const std::vector<telemetry::QuantizerFacts> quantizers_;
  Alarm stuck_;
  std::vector<double> last_, equal_;  // of each tensor: its maximum, and steps since that changed
  double highest_rate_ = 0;
  std::int64_t moved_ = 0;  // 1: the last step changed the weights by a fair part of the highest learning rate
};

}  // namespace octet::health
