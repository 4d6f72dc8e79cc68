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
  /// 1.4826 median(|x - median|): the standard deviation of normal values, hardly moved by a few outliers.
  double deviation() const;
  void visit_state(StateVisitor&);

 private:
  std::size_t length_;
  std::vector<double> values_;
};

}  // namespace octet::health
