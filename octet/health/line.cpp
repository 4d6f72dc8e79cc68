#include "octet/health/line.hpp"

#include "octet/base/check.hpp"
#include "octet/telemetry/median.hpp"

namespace octet::health {

double next_of_line(std::span<const double> x) {
  check(x.size() >= 2, "a line needs 2 values, got {}", x.size());
  std::vector<double> slopes, next;
  for (std::size_t j = 1; j < x.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) slopes.push_back((x[j] - x[i]) / double(j - i));
  const double slope = telemetry::median_of(std::move(slopes));
  for (std::size_t i = 0; i < x.size(); ++i) next.push_back(x[i] + slope * double(x.size() - i));
  return telemetry::median_of(std::move(next));
}

}  // namespace octet::health
