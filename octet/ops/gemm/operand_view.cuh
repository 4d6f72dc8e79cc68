#pragma once

// Only for *.cuda.cu files.

#include "octet/numerics/scale.hpp"
#include "octet/tensor/cuda/pack.cuh"
#include "octet/tensor/tensor.hpp"

namespace octet::cuda {

/// An operand of a GEMM as a thread reads it.
struct OperandView {
  const void* codes;
  const void* descales;
  DType type, descale_type;
  std::int64_t row, column;                // steps between codes
  std::int64_t block_rows, block_columns;  // 0: all
  DescaleStride descale;

  __device__ float at(std::int64_t r, std::int64_t c) const {
    const std::int64_t i = r * row + c * column;
    if (type == DType::f32) return static_cast<const float*>(codes)[i];
    if (type == DType::bf16) return to_float(static_cast<const Bf16*>(codes)[i]);
    if (type == DType::f16) return to_float(static_cast<const Fp16*>(codes)[i]);
    const std::uint8_t code = static_cast<const std::uint8_t*>(codes)[i];
    const std::int64_t at =
        (block_rows == 0 ? 0 : r / block_rows) * descale.row_block + (block_columns == 0 ? 0 : c / block_columns) * descale.col_block;
    const float scale =
        descale_type == DType::e8m0 ? decode_e8m0(static_cast<const std::uint8_t*>(descales)[at]) : static_cast<const float*>(descales)[at];
    return (type == DType::e4m3 ? octet::decode<E4M3>(code) : octet::decode<E5M2>(code)) * scale;
  }
};

inline OperandView view_of(const Quantized& q) {
  const std::int64_t stored = q.codes.shape[1];
  OperandView v{q.codes.data,
                q.descales.data,
                q.codes.dtype,
                q.descales.dtype,
                q.transposed ? 1 : stored,
                q.transposed ? stored : 1,
                q.block.rows,
                q.block.cols,
                {}};
  if (q.descales) v.descale = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  return v;
}

}  // namespace octet::cuda
