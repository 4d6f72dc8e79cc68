#pragma once

#include <vector>

namespace octet::telemetry {

/// The upper median of values, NaN without any.
double median_of(std::vector<double> values);

/// The standard deviation of normal values over their median distance from the median.
inline constexpr double deviation_per_median_distance = 1.4826;

}  // namespace octet::telemetry
