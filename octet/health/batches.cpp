#include "octet/health/batches.hpp"

namespace octet::health {

void BatchRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (one_token_.fires(e.one_token >= one_token_.threshold()))
    out.add(one_token_, "", e.one_token, format("{}% of the tokens that the step predicts are the same token", digits(100 * e.one_token)));
}

}  // namespace octet::health
