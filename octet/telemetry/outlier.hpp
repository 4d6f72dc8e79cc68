#pragma once

#include <cstddef>
#include <vector>

#include "octet/tensor/state.hpp"

namespace octet::telemetry {

/// Distance of a value from the last healthy ones, in their standard deviations: z = (x - mean) / sqrt(mean of squared deviations).
/// The caller adds a value after judging it, and omits those of skipped steps. Every z is computed from the stored values, so that a run
/// resumed from values() gives the same bits.
class LossWindow {
 public:
  explicit LossWindow(std::size_t length = 128, std::size_t least = 16) : length_(length), least_(least) {}

  /// NaN while fewer than `least` values are in the window, or all are equal.
  double z_score(double x) const;
  /// Drops the oldest of `length` values; ignores a value that is not finite.
  void add(double x);

  /// Oldest first, as a checkpoint stores them.
  const std::vector<double>& values() const { return values_; }
  /// Keeps the last `length` of them.
  void set_values(std::vector<double> values);
  void visit_state(StateVisitor& visitor);

 private:
  std::size_t length_, least_;
  std::vector<double> values_;
};

}  // namespace octet::telemetry
