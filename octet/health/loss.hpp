#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// loss_spike, loss_plateau, divergence. Skipped steps do not count; one that exceeded a limit of recovery can be a
/// spike.
class LossRules final : public Family {
 public:
  LossRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void spike(const telemetry::StepEvent&, Alerts&);
  void early_spike(double loss, Alerts&);
  void divergence(double loss, Alerts&);
  void plateau(const telemetry::StepEvent&, Alerts&);
  bool at_rest(double& fall) const;

  Alarm spike_, plateau_, divergence_;
  Window losses_, recent_;
  double best_;  // the least median of recent_ so far
  // The plateau's window in blocks of steps: means of loss, gradient norm and learning rate.
  std::int64_t block_steps_;
  Window block_losses_, block_norms_, block_rates_;
  double sums_[3] = {};
  std::int64_t summed_ = 0;
};

}  // namespace octet::health
