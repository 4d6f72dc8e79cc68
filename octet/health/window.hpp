#pragma once

#include <cstddef>
#include <vector>

#include "octet/telemetry/median.hpp"
#include "octet/tensor/state.hpp"

namespace octet::health {

using telemetry::median_of;

/// The last values of a series. Statistics are computed from the stored values, so that a resumed run has the same bits.
class Window {
 public:
  explicit Window(std::size_t length) : length_(length) {}

  /// Drops the oldest of `length` values.
  void add(double x);
  std::size_t size() const { return values_.size(); }
  bool full() const { return values_.size() == length_; }
  /// Oldest first.
  const std::vector<double>& values() const { return values_; }
  double median() const { return median_of(values_); }
  /// 1.4826 / sqrt(2) median(|x[i] - x[i - 1]|): the standard deviation of independent normal values, hardly moved by a few outliers or by
  /// a trend. 0 of fewer than two. Source: von Neumann 1941, the mean square successive difference, with a median.
  double deviation() const;
  void visit_state(StateVisitor&);

 private:
  std::size_t length_;
  std::vector<double> values_;
};

/// A window of fewer values has no statistics to compare with.
inline constexpr std::size_t fewest_values = 24;
/// deviation() of a window of losses, and at least 0.5% of their median.
double loss_deviation(const Window&);
/// loss_deviation()s of `loss` above the median.
double deviations_above(const Window&, double loss);
/// Losses whose median is the level of a loss that rises.
inline constexpr std::size_t losses_of_level = 5;

}  // namespace octet::health
