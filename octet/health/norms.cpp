#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// grad_norm_spike, grad_norm_growth, param_norm_growth. Skipped steps do not count; one that exceeded a limit of
/// recovery can be a spike.
class NormRules final : public Family {
 public:
  explicit NormRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void spike(const telemetry::StepEvent&, Alerts&);
  void growth(double norm, Alerts&);
  void parameters(double norm, Alerts&);

  Alarm spike_, growth_, parameters_;
  Window norms_, block_, blocks_, parameter_norms_;
};

namespace {

constexpr std::size_t block_steps = 32;
constexpr double rising = 1.05;          // from block to block
constexpr double least_deviations = 10;  // robust ones, of the logarithm of a norm that is a spike

// Norms vary by factors, so that their deviation is that of their logarithms.
double log_deviation(const Window& norms) {
  Window logs(norms.size());
  for (const double x : norms.values()) logs.add(std::log(std::max(x, 1e-30)));
  return logs.deviation();
}

}  // namespace

NormRules::NormRules(const AlertsConfig& config)
    : spike_("grad_norm_spike", config),
      growth_("grad_norm_growth", config),
      parameters_("param_norm_growth", config),
      norms_(spike_.window()),
      block_(block_steps),
      blocks_(growth_.window() / block_steps),
      parameter_norms_(parameters_.window()) {}

void NormRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (std::isfinite(e.grad_norm) && (!e.skipped || e.limited)) spike(e, out);
  if (std::isfinite(e.grad_norm) && !e.skipped) growth(e.grad_norm, out);
  if (std::isfinite(e.param_norm) && e.param_norm > 0) parameters(e.param_norm, out);
}

void NormRules::spike(const telemetry::StepEvent& e, Alerts& out) {
  const double norm = e.grad_norm;
  if (norms_.size() >= fewest_values) {
    const double middle = norms_.median(), factor = norm / middle, deviation = log_deviation(norms_);
    if (spike_.fires(factor >= spike_.threshold() && std::log(factor) >= least_deviations * deviation))
      out.add(spike_, "", factor,
              format("gradient norm {} is {} times the median of the last {} steps, {}, whose logarithms have a robust deviation of {}",
                     digits(norm), digits(factor), norms_.size(), digits(middle), digits(deviation)));
  }
  if (!e.skipped) norms_.add(norm);
}

// By medians of blocks, so that a spike is no growth.
void NormRules::growth(double norm, Alerts& out) {
  if (block_.full()) block_ = Window(block_steps);
  block_.add(norm);
  if (!block_.full()) return;
  blocks_.add(block_.median());
  const std::vector<double>& all = blocks_.values();
  const std::size_t n = all.size();
  const double lowest = *std::ranges::min_element(all), factor = all[n - 1] / lowest;
  const bool holds = n >= 3 && all[n - 1] > rising * all[n - 2] && all[n - 2] > rising * all[n - 3] && factor >= growth_.threshold();
  bool fires = false;
  for (std::size_t i = 0; i < block_steps; ++i) fires |= growth_.fires(holds);  // it rests in steps
  if (fires)
    out.add(growth_, "", factor,
            format("the gradient norm grew to {}, {} times the lowest of the last {} blocks of {} steps", digits(all[n - 1]),
                   digits(factor), n, block_steps));
}

// The norm is measured every few steps and repeated between.
void NormRules::parameters(double norm, Alerts& out) {
  if (parameter_norms_.size() >= fewest_values) {
    const double before = parameter_norms_.values().front(), factor = norm / before;
    if (parameters_.fires(factor >= parameters_.threshold()))
      out.add(parameters_, "", factor,
              format("the parameter norm grew from {} to {}, by a factor of {}, in {} steps", digits(before), digits(norm), digits(factor),
                     parameter_norms_.size()));
  }
  parameter_norms_.add(norm);
}

void NormRules::visit_state(StateVisitor& v) {
  v.section("spike", spike_), v.section("growth", growth_), v.section("parameters", parameters_);
  v.section("norms", norms_), v.section("block", block_), v.section("blocks", blocks_);
  v.section("parameter_norms", parameter_norms_);
}

std::unique_ptr<Family> norm_rules(const AlertsConfig& config, const Subject&) { return std::make_unique<NormRules>(config); }

}  // namespace octet::health
