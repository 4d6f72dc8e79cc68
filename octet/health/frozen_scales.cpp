#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/tensor/dtype.hpp"

namespace octet::health {

/// scale_frozen: a scale that does not follow its tensor's maxima. A scale from this step's maximum, or from those before, has room for the
/// smaller one of this step's maximum and the last one:
///   min(max |x| of this step, of the last step) * scale <= the format's largest value (8/7 of it for scales of OCP MX)
/// A skipped step leaves its maxima out of a history, so the step after it is not compared.
class FrozenScaleRules final : public Family {
 public:
  FrozenScaleRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::ScalesEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  const std::vector<telemetry::QuantizerFacts> quantizers_;
  std::vector<double> largest_;  // value of each tensor's format; NaN for one without scales
  Alarm frozen_;
  std::vector<double> last_;    // maxima of the last step; 0: not known
  std::vector<double> beyond_;  // steps in a row in which the scale had no room
};

namespace {

double largest_of(const std::string& format) {
  for (const DType d : {DType::e4m3, DType::e5m2})
    if (format == name(d)) return double(format_max(d));
  return NAN;
}

}  // namespace

FrozenScaleRules::FrozenScaleRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers),
      frozen_("scale_frozen", config, quantizers_.size()),
      last_(quantizers_.size(), 0),
      beyond_(quantizers_.size(), 0) {
  for (const telemetry::QuantizerFacts& q : quantizers_) largest_.push_back(largest_of(q.format));
}

void FrozenScaleRules::take(const telemetry::ScalesEvent& e, Alerts& out) {
  const std::size_t n = quantizers_.size();
  if (e.amax.size() != n || e.scale_min.size() != n) return;
  std::vector<double> factor(n), excess(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const double now = e.amax[i];
    factor[i] = std::fmin(now, last_[i]) * double(e.scale_min[i]) / largest_[i];
    const bool beyond = std::isfinite(now) && factor[i] >= frozen_.threshold();
    beyond_[i] = beyond ? beyond_[i] + 1 : 0, last_[i] = std::isfinite(now) ? now : 0;
    if (beyond_[i] >= double(frozen_.window())) excess[i] = factor[i] / frozen_.threshold();
  }
  const auto worst = frozen_.fires(excess);
  if (!worst) return;
  const std::string path = path_of(quantizers_[*worst]);
  out.add(frozen_, path, factor[*worst],
          format("the scale of {} is {}, {} times as much as its maximum {} allows, for {} steps{}", path, digits(e.scale_min[*worst]),
                 digits(factor[*worst]), digits(e.amax[*worst]), std::int64_t(beyond_[*worst]), and_more(frozen_.holding() - 1)));
}

void FrozenScaleRules::take(const telemetry::StepEvent& e, Alerts&) {
  if (e.skipped) std::ranges::fill(last_, 0);
}

void FrozenScaleRules::visit_state(StateVisitor& v) {
  const std::size_t n = quantizers_.size();
  v.section("frozen", frozen_), v.state("last", last_), v.state("beyond", beyond_);
  if (v.restoring()) last_.resize(n, 0), beyond_.resize(n, 0);
}

std::unique_ptr<Family> frozen_scale_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<FrozenScaleRules>(config, subject);
}

}  // namespace octet::health
