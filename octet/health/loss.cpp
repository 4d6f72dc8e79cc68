#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// loss_spike, loss_plateau, divergence. Skipped steps do not count; one that exceeded a limit of recovery can be a
/// spike.
class LossRules final : public Family {
 public:
  LossRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void spike(const telemetry::StepEvent&, Alerts&);
  void early_spike(double loss, Alerts&);
  void divergence(double loss, Alerts&);
  void plateau(const telemetry::StepEvent&, Alerts&);
  bool at_rest(double& fall) const;

  Alarm spike_, plateau_, divergence_;
  Window losses_, recent_;
  double best_;  // the least median of recent_ so far
  // The plateau's window in blocks of steps: means of loss, gradient norm and learning rate.
  std::int64_t block_steps_;
  Window block_losses_, block_norms_, block_rates_;
  double sums_[3] = {};
  std::int64_t summed_ = 0;
};

namespace {

constexpr std::size_t blocks = 20;
constexpr double above_any_loss = 1e30;
constexpr std::size_t fewest_early = 4;
constexpr double early_share = 0.05;  // of the lowest loss, that deviations of the first losses have at least
constexpr double kept_norm = 0.98, kept_rate = 0.5;

struct Half {
  double mean = 0, variance = 0;
};
Half half(const std::vector<double>& all, bool later) {
  const auto begin = all.begin() + std::ptrdiff_t(later ? all.size() / 2 : 0), end = begin + std::ptrdiff_t(all.size() / 2);
  const double n = double(end - begin);
  Half h{.mean = std::accumulate(begin, end, 0.0) / n};
  for (auto x = begin; x != end; ++x) h.variance += (*x - h.mean) * (*x - h.mean) / (n - 1);
  return h;
}

}  // namespace

LossRules::LossRules(const AlertsConfig& config, const Subject& subject)
    : spike_("loss_spike", config),
      plateau_("loss_plateau", config),
      divergence_("divergence", config),
      losses_(spike_.window()),
      recent_(divergence_.window()),
      best_(above_any_loss),
      // A fifth of a long run: its loss falls more slowly later on.
      block_steps_(std::max(std::int64_t(plateau_.window()), subject.steps / 5) / std::int64_t(blocks)),
      block_losses_(blocks),
      block_norms_(blocks),
      block_rates_(blocks) {}

void LossRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if ((e.skipped && !e.limited) || !std::isfinite(e.loss) || !std::isfinite(e.grad_norm)) return;
  spike(e, out);
  if (e.skipped) return;
  divergence(e.loss, out);
  plateau(e, out);
}

void LossRules::spike(const telemetry::StepEvent& e, Alerts& out) {
  if (losses_.size() < fewest_values) {
    early_spike(e.loss, out);
  } else {
    const double z = deviations_above(losses_, e.loss);
    if (spike_.fires(z >= spike_.threshold()))
      out.add(spike_, "", z,
              format("loss {} is {} robust deviations above {}, the median of the last {} steps", digits(e.loss), digits(z),
                     digits(losses_.median()), losses_.size()));
  }
  if (!e.skipped) losses_.add(e.loss);
}

// The first losses fall, so they have no level: a loss must be far above the lowest of them.
void LossRules::early_spike(double loss, Alerts& out) {
  if (losses_.size() < fewest_early) return;
  const double lowest = *std::ranges::min_element(losses_.values());
  const double z = (loss - lowest) / std::max(losses_.deviation(), early_share * std::fabs(lowest));
  if (spike_.fires(z >= spike_.threshold()))
    out.add(spike_, "", z,
            format("loss {} is {} robust deviations above {}, the lowest of the first {} steps", digits(loss), digits(z), digits(lowest),
                   losses_.size()));
}

void LossRules::divergence(double loss, Alerts& out) {
  recent_.add(loss);
  if (!recent_.full()) return;
  const double lowest = *std::ranges::min_element(recent_.values()), factor = lowest / best_;
  if (divergence_.fires(factor >= divergence_.threshold()))
    out.add(divergence_, "", factor,
            format("for {} steps the loss was at least {}, {} times the best median of so many steps, {}", recent_.size(), digits(lowest),
                   digits(factor), digits(best_)));
  best_ = std::min(best_, recent_.median());
}

void LossRules::plateau(const telemetry::StepEvent& e, Alerts& out) {
  const double values[] = {e.loss, e.grad_norm, e.learning_rate};
  for (int i = 0; i < 3; ++i) sums_[i] += values[i];
  if (++summed_ < block_steps_) return;
  Window* const windows[] = {&block_losses_, &block_norms_, &block_rates_};
  for (int i = 0; i < 3; ++i) windows[i]->add(std::exchange(sums_[i], 0) / double(summed_));
  summed_ = 0;
  if (!block_losses_.full()) return;
  double fall = 0;
  const bool holds = at_rest(fall);
  // The alarm rests in steps, and sees one block.
  bool fires = false;
  for (std::int64_t i = 0; i < block_steps_; ++i) fires |= plateau_.fires(holds);
  if (fires)
    out.add(plateau_, "", fall,
            format("the mean loss fell by {}% between the halves of the last {} steps, and the gradient norm did not fall",
                   fixed(100 * fall, 2), std::int64_t(blocks) * block_steps_));
}

// The fall is below the threshold by two of its standard errors; norm and learning rate are as before.
bool LossRules::at_rest(double& fall) const {
  const Half before = half(block_losses_.values(), false), after = half(block_losses_.values(), true);
  fall = (before.mean - after.mean) / before.mean;
  const double error = std::sqrt((before.variance + after.variance) / (double(blocks) / 2)) / before.mean;
  const double rates[] = {half(block_rates_.values(), false).mean, half(block_rates_.values(), true).mean};
  const double norms[] = {half(block_norms_.values(), false).mean, half(block_norms_.values(), true).mean};
  return fall + 2 * error < plateau_.threshold() && norms[1] >= kept_norm * norms[0] &&
         std::min(rates[0], rates[1]) >= kept_rate * std::max(rates[0], rates[1]);
}

void LossRules::visit_state(StateVisitor& v) {
  v.section("spike", spike_), v.section("plateau", plateau_), v.section("divergence", divergence_);
  v.section("losses", losses_), v.section("recent", recent_), v.state("best", best_);
  v.section("block_losses", block_losses_), v.section("block_norms", block_norms_), v.section("block_rates", block_rates_);
  v.state("sum_loss", sums_[0]), v.state("sum_norm", sums_[1]), v.state("sum_rate", sums_[2]), v.count("summed", summed_);
}

std::unique_ptr<Family> loss_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<LossRules>(config, subject);
}

}  // namespace octet::health
