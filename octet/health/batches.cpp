#include "octet/health/families.hpp"

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

void BatchRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (one_token_.fires(e.one_token >= one_token_.threshold()))
    out.add(one_token_, "", e.one_token, format("{}% of the tokens that the step predicts are the same token", digits(100 * e.one_token)));
}

std::unique_ptr<Family> batch_rules(const AlertsConfig& config, const Subject&) { return std::make_unique<BatchRules>(config); }

}  // namespace octet::health
