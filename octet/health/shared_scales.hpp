#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// mu_falls: the factor that leaves room for sums of gradients over ranks.
class SharedScaleRules final : public Family {
 public:
  SharedScaleRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::SharedScalesEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  const std::vector<std::string> tensors_;
  Alarm falls_;
  std::vector<double> last_;  // mu of each tensor
  std::vector<double> fell_;  // [window, tensors]: 1 where mu fell; the row of measurement i is i mod window
  std::int64_t seen_ = 0;
};

}  // namespace octet::health
