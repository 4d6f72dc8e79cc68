#include "octet/base/text.hpp"
#include "octet/health/families.hpp"

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

SharedScaleRules::SharedScaleRules(const AlertsConfig& config, const Subject& subject)
    : tensors_(subject.shared_scales),
      falls_("mu_falls", config, tensors_.size()),
      last_(tensors_.size(), 0),
      fell_(falls_.window() * tensors_.size(), 0) {}

void SharedScaleRules::take(const telemetry::SharedScalesEvent& e, Alerts& out) {
  const std::size_t n = tensors_.size(), window = falls_.window();
  if (e.mu.size() != n || n == 0) return;
  double* const row = fell_.data() + std::size_t(seen_) % window * n;
  std::vector<double> excess(n, 0);
  for (std::size_t t = 0; t < n; ++t) {
    row[t] = e.mu[t] < last_[t] ? 1 : 0;
    last_[t] = e.mu[t];
    for (std::size_t i = 0; i < window; ++i) excess[t] += fell_[i * n + t] / falls_.threshold();
  }
  ++seen_;
  const auto worst = falls_.fires(excess);
  if (!worst) return;
  out.add(falls_, tensors_[*worst], excess[*worst] * falls_.threshold(),
          format("mu of {} fell between {} of the last {} measurements, to {}{}", tensors_[*worst],
                 digits(excess[*worst] * falls_.threshold()), window, digits(last_[*worst]), and_more(falls_.holding() - 1)));
}

void SharedScaleRules::visit_state(StateVisitor& v) {
  v.section("falls", falls_), v.state("last", last_), v.state("fell", fell_), v.count("seen", seen_);
  if (!v.restoring() || (last_.size() == tensors_.size() && fell_.size() == falls_.window() * tensors_.size())) return;
  last_.assign(tensors_.size(), 0), fell_.assign(falls_.window() * tensors_.size(), 0), seen_ = 0;
}

std::unique_ptr<Family> shared_scale_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<SharedScaleRules>(config, subject);
}

}  // namespace octet::health
