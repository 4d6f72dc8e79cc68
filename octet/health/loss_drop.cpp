#include "octet/health/loss_drop.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/text.hpp"

namespace octet::health {
namespace {

constexpr std::ptrdiff_t recent = 8;  // losses whose median is the level of a loss that falls

}  // namespace

LossDropRules::LossDropRules(const AlertsConfig& config) : drop_("loss_drop", config), losses_(drop_.window()) {}

void LossDropRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (e.skipped || !std::isfinite(e.loss)) return;
  if (losses_.size() >= fewest_values) {
    const double now = median_of({losses_.values().end() - recent, losses_.values().end()});
    const double level = std::min(now, losses_.median()), z = (level - e.loss) / loss_deviation(losses_);
    const double both = std::min(z, std::exchange(last_, z));
    if (drop_.fires(both >= drop_.threshold()))
      out.add(drop_, "", z,
              format("loss {} is {} robust deviations below {}, the level of the last steps, and so was the one before", digits(e.loss),
                     digits(z), digits(level)));
  }
  losses_.add(e.loss);
}

void LossDropRules::visit_state(StateVisitor& v) { v.section("drop", drop_), v.section("losses", losses_), v.state("last", last_); }

}  // namespace octet::health
