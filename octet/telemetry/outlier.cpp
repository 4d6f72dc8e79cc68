#include "octet/telemetry/outlier.hpp"

#include <cmath>

namespace octet::telemetry {

double LossWindow::z_score(double x) const {
  const double n = double(values_.size());
  if (values_.empty() || values_.size() < least_) return NAN;
  double sum = 0, squares = 0;
  for (const double v : values_) sum += v;
  const double mean = sum / n;
  for (const double v : values_) squares += (v - mean) * (v - mean);
  return squares > 0 ? (x - mean) / std::sqrt(squares / n) : NAN;
}

void LossWindow::add(double x) {
  if (!std::isfinite(x)) return;
  if (values_.size() == length_) values_.erase(values_.begin());
  values_.push_back(x);
}

void LossWindow::set_values(std::vector<double> values) {
  if (values.size() > length_) values.erase(values.begin(), values.end() - std::ptrdiff_t(length_));
  values_ = std::move(values);
}

void LossWindow::visit_state(StateVisitor& visitor) {
  std::vector<double> values = values_;
  visitor.state("values", values);
  if (visitor.restoring()) set_values(std::move(values));
}

}  // namespace octet::telemetry
