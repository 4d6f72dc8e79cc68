#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// loss_drop: a loss that falls at once, in two steps in a row. It is compared with the lesser of two medians, of the last 8 losses and of
/// the window: the latter lags behind a loss that falls, the former is high after bad batches. Skipped steps do not count.
class LossDropRules final : public Family {
 public:
  explicit LossDropRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  Alarm drop_;
  Window losses_;
  double last_ = 0;  // robust deviations by which the last loss was below its median
};

}  // namespace octet::health
