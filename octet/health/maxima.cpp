#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"

namespace octet::health {

/// amax_stuck: a maximum that keeps its bits while weights move. Weights are left out: theirs may rest at a low learning rate.
class MaximaRules final : public Family {
 public:
  MaximaRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::ScalesEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  const std::vector<telemetry::QuantizerFacts> quantizers_;
  Alarm stuck_;
  std::vector<double> last_, equal_;  // of each tensor: its maximum, and steps since that changed
  double highest_rate_ = 0;
  std::int64_t moved_ = 0;  // 1: the last step changed the weights by a fair part of the highest learning rate
};

namespace {

constexpr double least_rate = 0.1;           // of the highest learning rate so far
constexpr double steps_of_activations = 16;  // times as many as of gradients: one token can hold their maximum

// Weights may stay, and the maximum of probabilities is 1.
double factor_of(const std::string& operand) {
  if (operand == "w" || operand == "p") return INFINITY;
  return is_gradient(operand) ? 1 : steps_of_activations;
}

}  // namespace

MaximaRules::MaximaRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers),
      stuck_("amax_stuck", config, quantizers_.size()),
      last_(quantizers_.size(), -1),
      equal_(quantizers_.size(), 0) {}

void MaximaRules::take(const telemetry::ScalesEvent& e, Alerts& out) {
  const std::size_t n = quantizers_.size();
  if (e.amax.size() != n || moved_ == 0) return;
  std::vector<double> excess(n);
  for (std::size_t i = 0; i < n; ++i) {
    equal_[i] = e.amax[i] == last_[i] ? equal_[i] + 1 : 0;
    last_[i] = std::isnan(e.amax[i]) ? -1 : double(e.amax[i]);  // of a layer in another precision
    excess[i] = equal_[i] / (factor_of(quantizers_[i].operand) * stuck_.threshold());
  }
  const auto worst = stuck_.fires(excess);
  if (!worst) return;
  const std::string path = path_of(quantizers_[*worst]);
  out.add(stuck_, path, equal_[*worst],
          format("the maximum of {} has been {} for {} steps, though the weights change{}", path, digits(last_[*worst]),
                 std::int64_t(equal_[*worst]), and_more(stuck_.holding() - 1)));
}

void MaximaRules::take(const telemetry::StepEvent& e, Alerts&) {
  highest_rate_ = std::fmax(highest_rate_, e.learning_rate);
  moved_ = !e.skipped && e.learning_rate >= least_rate * highest_rate_;
}

void MaximaRules::visit_state(StateVisitor& v) {
  v.section("stuck", stuck_), v.state("last", last_), v.state("equal", equal_);
  v.state("highest_rate", highest_rate_), v.count("moved", moved_);
  if (!v.restoring() || (last_.size() == quantizers_.size() && equal_.size() == quantizers_.size())) return;
  last_.assign(quantizers_.size(), -1), equal_.assign(quantizers_.size(), 0);
}

std::unique_ptr<Family> maxima_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<MaximaRules>(config, subject);
}

}  // namespace octet::health
