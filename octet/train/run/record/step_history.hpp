#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "octet/tensor/state.hpp"

namespace octet::train {

/// One number per step of a run, in bounded memory: means over `width` consecutive values each. When `capacity` means are full,
/// neighbours are merged and the width doubles. Results are exact up to `capacity` values.
class StepHistory {
 public:
  static constexpr std::size_t capacity = 8192;  // 64 KiB in a checkpoint of any run

  void add(double value);
  std::int64_t count() const { return std::int64_t(means_.size()) * width_ + partial_count_; }
  /// Mean of the last 1/n of the values, at least one, rounded up to whole means; NaN without values.
  double mean_of_last_part(std::int64_t n) const;
  /// The upper median of the means; NaN without values.
  double median() const;
  void visit_state(StateVisitor&);

 private:
  std::vector<double> means_;  // of width_ values each
  std::int64_t width_ = 1;
  double partial_sum_ = 0;  // of the newest values, fewer than width_
  std::int64_t partial_count_ = 0;
};

}  // namespace octet::train
