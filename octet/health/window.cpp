#include "octet/health/window.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace octet::health {

void Window::add(double x) {
  if (full()) values_.erase(values_.begin());
  values_.push_back(x);
}

double Window::deviation() const {
  std::vector<double> steps;
  for (std::size_t i = 1; i < values_.size(); ++i) steps.push_back(std::fabs(values_[i] - values_[i - 1]));
  return steps.empty() ? 0 : telemetry::deviation_per_median_distance / std::numbers::sqrt2 * median_of(std::move(steps));
}

double loss_deviation(const Window& losses) {
  constexpr double least_share = 0.005;
  return std::max(losses.deviation(), least_share * std::fabs(losses.median()));
}

double deviations_above(const Window& losses, double loss) { return (loss - losses.median()) / loss_deviation(losses); }

void Window::visit_state(StateVisitor& v) {
  v.state("values", values_);
  if (v.restoring() && values_.size() > length_) values_.erase(values_.begin(), values_.end() - std::ptrdiff_t(length_));
}

}  // namespace octet::health
