#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "octet/watch/range.hpp"
#include "octet/watch/step_buckets.hpp"

namespace octet::watch {

/// The ranges of several measures of every tensor in neighbouring steps: entry measure * tensors + tensor.
struct TensorRow {
  std::int64_t first = 0, last = 0;
  std::vector<Range> cells{};

  void absorb(const TensorRow& other) {
    last = other.last;
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i].absorb(other.cells[i]);
  }
};

/// Measures of all quantized tensors over steps, in at most about `most_cells` ranges.
class TensorHistory {
 public:
  TensorHistory(std::size_t tensors, std::size_t measures, std::size_t most_cells)
      : tensors_(tensors),
        measures_(measures),
        rows_(std::clamp<std::size_t>(most_cells / std::max<std::size_t>(tensors * measures, 1), 16, 1024)) {}

  /// One step's values: `low` and `high` of each measure, which may be the same list, with an entry per tensor.
  struct Values {
    const std::vector<float>*low, *high;
  };
  void add(std::int64_t step, std::initializer_list<Values> measures) {
    TensorRow row{.first = step, .last = step, .cells = std::vector<Range>(tensors_ * measures_)};
    Range* cell = row.cells.data();
    for (const Values& values : measures)
      for (std::size_t i = 0; i < tensors_; ++i, ++cell) cell->add((*values.low)[i]), cell->add((*values.high)[i]);
    rows_.add(std::move(row));
  }
  void clear() { rows_.clear(); }

  std::size_t tensors() const { return tensors_; }
  const StepBuckets<TensorRow>& rows() const { return rows_; }
  Range cell(const TensorRow& row, std::size_t measure, std::size_t tensor) const { return row.cells[measure * tensors_ + tensor]; }

 private:
  std::size_t tensors_, measures_;
  StepBuckets<TensorRow> rows_;
};

}  // namespace octet::watch
