#pragma once

#include <span>

namespace octet::telemetry {

/// Statistics of differences between paired runs. Two runs of one seed are a pair: same data, same first weights.
struct PairedGap {
  int pairs = 0;
  double mean = 0;       // NaN without a pair
  double deviation = 0;  // standard deviation of one pair's difference, with n - 1; NaN of fewer than 2
};

/// Mean and deviation of `differences`, of which those that are not finite are left out.
PairedGap paired_gap(std::span<const double> differences);

/// Half the width of Student's interval around the mean:
///   t(1 - confidence, two-sided; pairs - 1) * deviation / sqrt(pairs)
/// NaN of fewer than 2 pairs. Throws ContractError unless 0 < confidence < 1.
double half_width(const PairedGap&, double confidence);

/// Two-sided p-value of "the true mean is `value`", by Student's t test. 1 for fewer than 2 pairs; without deviation 0, or 1 where the mean
/// is `value`.
double p_value(const PairedGap&, double value);

}  // namespace octet::telemetry
