#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace octet::ops {

/// Measurements of a tensor's blocks of values that share a scale, or of its rows with a scale each. Sums of integers, which depend on no
/// order.
struct BlockHealth {
  static constexpr int units = 256;  // per octave

  std::int64_t scales = 0;             // in both sums: of rows, or of blocks that are not all zeros
  std::int64_t log_scale = 0;          // sum of log_units(scale)
  std::int64_t log_scale_squares = 0;  // of its squares
  std::int64_t blocks = 0;             // whose codes were compared; not whole rows, nearly all of which lose a value
  std::int64_t lossy = 0;              // of these, with a saturated or flushed value

  void add(const BlockHealth& h) {
    scales += h.scales, log_scale += h.log_scale, log_scale_squares += h.log_scale_squares, blocks += h.blocks, lossy += h.lossy;
  }
  /// Standard deviation of log2 of the scales; NaN without any.
  double scale_deviation() const {
    const double n = double(scales), mean = double(log_scale) / n;
    return std::sqrt(std::max(double(log_scale_squares) / n - mean * mean, 0.0)) / units;
  }
  /// Share of the blocks with a saturated or flushed value; NaN without any.
  double lossy_share() const { return double(lossy) / double(blocks); }
};

}  // namespace octet::ops
