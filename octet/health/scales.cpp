#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/order_of_step.hpp"

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

namespace {

constexpr std::size_t reference = 5;   // events before the window, whose median is compared with
constexpr std::int64_t settling = 40;  // first steps of a run, in which gradients find their range
constexpr double small_for = 3;        // one batch may have small gradients

double median_of_five(double a, double b, double c, double d, double e) {
  const double low = std::max(std::min(a, b), std::min(c, d)), high = std::min(std::max(a, b), std::max(c, d));
  return std::max(std::min(low, high), std::min(std::max(low, high), e));
}

}  // namespace

ScaleRules::ScaleRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers),
      order_(order_of_step(quantizers_)),
      drop_("scale_drop", config, quantizers_.size()),
      rise_("scale_rise", config, quantizers_.size()),
      length_(drop_.window() + reference),
      ring_(length_ * quantizers_.size(), 0),
      small_(quantizers_.size(), 0) {}

// For each tensor the median of the oldest events in the ring.
std::vector<double> ScaleRules::earlier() const {
  const std::size_t n = quantizers_.size();
  const double* row[reference];
  for (std::size_t i = 0; i < reference; ++i) row[i] = ring_.data() + (std::size_t(seen_) + i) % length_ * n;
  std::vector<double> medians(n);
  for (std::size_t t = 0; t < n; ++t) medians[t] = median_of_five(row[0][t], row[1][t], row[2][t], row[3][t], row[4][t]);
  return medians;
}

void ScaleRules::take(const telemetry::ScalesEvent& e, Alerts& out) {
  const std::size_t n = quantizers_.size();
  if (e.amax.size() != n || n == 0) return;
  if (seen_ >= settling) {
    std::vector<double> drop(n, 0), rise(n, 0);
    const std::vector<double> all_before = earlier();
    const double drops = drop_.threshold(), rises = rise_.threshold();
    for (std::size_t i = 0; i < n; ++i) {
      const double before = all_before[i], now = e.amax[i];
      const bool known = before > 0 && std::isfinite(before) && std::isfinite(now), gradient = is_gradient(quantizers_[i].operand);
      const double fallen = known ? before / now / (gradient ? rises * rises : rises) : 0;
      if (known) drop[i] = now / before / (gradient ? drops * drops : drops);
      small_[i] = fallen >= 1 ? small_[i] + 1 : 0;
      if (small_[i] >= small_for) rise[i] = fallen;
    }
    if (const auto i = drop_.fires(drop, order_))
      report(drop_, *i, all_before[*i], e, "an outlier takes the bits of its other values", out);
    if (const auto i = rise_.fires(rise)) report(rise_, *i, all_before[*i], e, "its values shrink or its layer died", out);
  }
  double* const row = ring_.data() + std::size_t(seen_) % length_ * n;
  for (std::size_t i = 0; i < n; ++i) row[i] = std::isnan(e.amax[i]) ? 0 : double(e.amax[i]);  // of a layer in another precision
  ++seen_;
}

void ScaleRules::report(const Alarm& alarm, std::size_t tensor, double before, const telemetry::ScalesEvent& e, const char* effect,
                        Alerts& out) {
  const std::string path = path_of(quantizers_[tensor]);
  const double now = e.amax[tensor];
  out.add(alarm, path, std::max(before / now, now / before),
          format("the maximum of {} was {} and is {}: {}; its scale is {}{}", path, digits(before), digits(now), effect,
                 digits(e.scale_min.at(tensor)), and_more(alarm.holding() - 1)));
}

void ScaleRules::visit_state(StateVisitor& v) {
  v.section("drop", drop_), v.section("rise", rise_);
  v.state("ring", ring_), v.state("small", small_), v.count("seen", seen_);
  if (!v.restoring() || (ring_.size() == length_ * quantizers_.size() && small_.size() == quantizers_.size())) return;
  ring_.assign(length_ * quantizers_.size(), 0), small_.assign(quantizers_.size(), 0), seen_ = 0;
}

std::unique_ptr<Family> scale_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<ScaleRules>(config, subject);
}

}  // namespace octet::health
