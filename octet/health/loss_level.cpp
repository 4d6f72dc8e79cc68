#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/line.hpp"
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

namespace {

constexpr std::size_t recent = 8, of_line = 16;  // losses whose median, and whose line, is the level of a loss that falls
static_assert(of_line <= fewest_values);

}  // namespace

LossLevelRules::LossLevelRules(const AlertsConfig& config)
    : drop_("loss_drop", config), rise_("loss_rise", config), losses_(drop_.window()), above_(losses_of_level) {}

void LossLevelRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (e.skipped || !std::isfinite(e.loss)) return;
  if (losses_.size() >= fewest_values) drop(e.loss, out), rise(e.loss, out);
  losses_.add(e.loss);
}

void LossLevelRules::drop(double loss, Alerts& out) {
  const std::span<const double> all(losses_.values());
  const std::span<const double> last = all.last(recent);
  const double now = median_of({last.begin(), last.end()});
  const double level = std::min({now, losses_.median(), next_of_line(all.last(of_line))}), z = (level - loss) / loss_deviation(losses_);
  const double both = std::min(z, std::exchange(below_, z));
  if (!drop_.fires(both >= drop_.threshold())) return;
  out.add(drop_, "", z,
          format("loss {} is {} robust deviations below {}, the level of the last steps, and so was the one before", digits(loss),
                 digits(z), digits(level)));
}

void LossLevelRules::rise(double loss, Alerts& out) {
  above_.add(deviations_above(losses_, loss));
  const double level = above_.median();
  if (!rise_.fires(above_.full() && level >= rise_.threshold())) return;
  out.add(rise_, "", level,
          format("losses of {} steps, the last one {}, are {} robust deviations above {}, the median of the last {} steps", losses_of_level,
                 digits(loss), digits(level), digits(losses_.median()), losses_.size()));
}

void LossLevelRules::visit_state(StateVisitor& v) {
  v.section("drop", drop_), v.section("rise", rise_);
  v.section("losses", losses_), v.section("above", above_), v.state("below", below_);
}

std::unique_ptr<Family> loss_level_rules(const AlertsConfig& config, const Subject&) { return std::make_unique<LossLevelRules>(config); }

}  // namespace octet::health
