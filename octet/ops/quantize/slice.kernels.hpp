#pragma once

#include "octet/ops/quantize/slice.hpp"
#include "octet/numerics/scale.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// Consecutive values of a matrix [rows, cols], element `first` the first of them. `factor`, f32 [1]: of FP16 codes, otherwise empty.
struct MatrixSlice {
  Tensor values;
  std::int64_t rows = 0, cols = 0, first = 0;
  Tensor factor;
};
/// The place of a block's scale in their layout: the block of (r, c) is at r / block.rows * stride.row_block + ...
struct BlockTable {
  Tensor at;  // f32
  ScaleBlock block;
  DescaleStride stride;
};
/// Of quantize_slice(): the scales, the descales of known ones, otherwise empty, and the maxima to be raised, or empty.
struct SliceTables {
  BlockTable scales, descales, maxima;
};
}  // namespace octet::ops

/// Raises the table's values, which are 0 or more.
OCTET_KERNEL(slice_maxima, const ops::MatrixSlice&, const ops::BlockTable& maxima)
OCTET_KERNEL(quantize_slice, const ops::MatrixSlice&, const ops::QuantizeSpec&, const ops::SliceTables&, const Tensor& codes)

namespace octet::cuda {
/// scales[i] and descales[i] of n maxima.
void scales_of_maxima(Queue, const BlockRule&, std::int64_t n, const float* maxima, float* scales, float* descales);
}  // namespace octet::cuda
