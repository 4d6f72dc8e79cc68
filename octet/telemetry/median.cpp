#include "octet/telemetry/median.hpp"

#include <algorithm>
#include <cmath>

namespace octet::telemetry {

double median_of(std::vector<double> values) {
  if (values.empty()) return NAN;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace octet::telemetry
