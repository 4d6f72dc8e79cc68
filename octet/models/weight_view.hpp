#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "octet/io/tensor_view.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::models {

/// A weight of a Hugging Face folder: numbers, or E4M3 codes and the scales of their blocks.
struct WeightView {
  io::TensorView tensor;
  std::optional<io::TensorView> scales;  // F32, BF16, F16 or F8_E8M0, row-major, one per block; none: the tensor is numbers
  ScaleBlock block = {};
  std::optional<io::TensorView> input_scale = {};  // of activations, one number

  /// The values of rows [first, first + n) of `columns` each; `first` is a multiple of row_block(). Throws DataError naming the tensor of
  /// a code that is NaN, a scale that is not positive and finite, or a value beyond f32.
  void read(std::int64_t first, std::int64_t columns, std::span<float> values) const;
  /// Rows to read at once are a multiple of this, except the last ones.
  /// The scale of a weight whose codes have one, and that of its activations. Throws DataError naming the tensor of one that is not
  /// positive and finite.
  float scale() const { return descales(0, 1, tensor.shape[1])[0]; }
  float activation_scale() const;
  std::int64_t row_block() const { return std::max(1, block.rows); }

 private:
  std::vector<float> descales(std::int64_t first, std::int64_t rows, std::int64_t columns) const;
};

}  // namespace octet::models
