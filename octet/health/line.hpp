#pragma once

#include <span>

namespace octet::health {

/// The value that follows x [n], n >= 2, on a line through these: slope = median of (x[j] - x[i]) / (j - i) over all i < j,
/// value = median of x[i] + slope (n - i). Up to 29% of the values may be outliers.
/// Source: Theil 1950, Sen 1968, estimates of the regression coefficient based on Kendall's tau.
double next_of_line(std::span<const double> x);

}  // namespace octet::health
