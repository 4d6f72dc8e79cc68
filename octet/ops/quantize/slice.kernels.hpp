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
/// quantize_slice() with the scales of any blocks of the matrix, whose columns are all or multiples of 16.
void quantize_slice_in_blocks(Stream&, const StoredSlice& x, const QuantizeSpec&, const BlockTable& scales, const Tensor& codes);
}  // namespace octet::ops

/// Raises the table's values, which are 0 or more.
OCTET_KERNEL(slice_maxima, const ops::MatrixSlice&, const ops::BlockTable& maxima)
OCTET_KERNEL(quantize_slice, const ops::MatrixSlice&, const ops::QuantizeSpec&, const ops::BlockTable& scales, const Tensor& codes)

namespace octet::cuda {
/// scales[i] and descales[i] of n maxima.
void scales_of_maxima(Queue, const BlockRule&, std::int64_t n, const float* maxima, float* scales, float* descales);
}  // namespace octet::cuda
