#include "octet/health/window.hpp"

#include <cmath>

namespace octet::health {

void Window::add(double x) {
  if (full()) values_.erase(values_.begin());
  values_.push_back(x);
}

double Window::deviation() const {
  const double middle = median();
  std::vector<double> distances;
  distances.reserve(values_.size());
  for (const double x : values_) distances.push_back(std::fabs(x - middle));
  return telemetry::deviation_per_median_distance * median_of(std::move(distances));
}

void Window::visit_state(StateVisitor& v) {
  v.state("values", values_);
  if (v.restoring() && values_.size() > length_) values_.erase(values_.begin(), values_.end() - std::ptrdiff_t(length_));
}

}  // namespace octet::health
