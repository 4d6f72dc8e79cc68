#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// loss_drop and loss_rise: the level of the loss over a few steps, in robust deviations from that of the window. Skipped steps do not
/// count.
///
/// loss_drop: two losses in a row are far below the least of three levels: the medians of the window and of the last 8 losses, and the
/// next value of the line through the last 16. The medians lag behind a loss that falls; the last 8 are high after bad batches. loss_rise:
/// the median of 5 losses is above the median of the window before each.
class LossLevelRules final : public Family {
 public:
  explicit LossLevelRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void drop(double loss, Alerts&);
  void rise(double loss, Alerts&);

  Alarm drop_, rise_;
  Window losses_, above_;  // above_: robust deviations of the last losses above the median
  double below_ = 0;       // robust deviations of the last loss below its level
};

}  // namespace octet::health
