#pragma once

// Only for *.cuda.cu files: row bodies that read a saved activation, decoded as it is loaded.

#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/ops/quantize/saved.hpp"

namespace octet::cuda {

/// A row of codes from column `at` on, a multiple of the block, with a scale per block of the row.
struct CodedRow {
  const std::uint8_t *codes, *scales;
  std::int64_t at = 0;
  __device__ __forceinline__ CodedRow operator+(std::int64_t columns) const { return {codes, scales, at + columns}; }
};

/// Lanes that also load a pack of codes; all of it is in one block.
template <int N>
struct CodedPackLanes : PackLanes<N> {
  using PackLanes<N>::load;
  __device__ __forceinline__ Pack<N> load(const CodedRow& x, std::int64_t i) const {
    const std::uint8_t* const from = x.codes + x.at + i;
    const float scale = decode_e8m0(x.scales[(x.at + i) / ops::saved_block]);
    Pack<N> out;
    if constexpr (N == 8) {
      const uint2 codes = *reinterpret_cast<const uint2*>(from);
#pragma unroll
      for (int j = 0; j < 8; ++j) out.v[j] = decode_one<E4M3>(byte_of(codes, j)) * scale;
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) out.v[j] = decode_one<E4M3>(from[j]) * scale;
    }
    return out;
  }
};

/// Rows of `cols` values in memory, for a row body.
template <class T>
struct ValueRows {
  const T* values;
  int cols;
  template <int N>
  using Lanes = PackLanes<N>;
  __device__ __forceinline__ const T* operator()(int row) const { return row_of(values, row, cols); }
};
/// The same of codes.
struct CodedRows {
  const std::uint8_t *codes, *scales;
  int cols;
  std::int64_t scales_of_row;
  template <int N>
  using Lanes = CodedPackLanes<N>;
  __device__ __forceinline__ CodedRow operator()(int row) const { return {row_of(codes, row, cols), scales + row * scales_of_row}; }
};

/// f(rows of x, whether packs of eight are aligned).
template <class T, class F>
void with_rows(const ops::Saved& x, const F& f) {
  const int cols = int(x.shape[1]);
  if (!x.coded()) return f(ValueRows<T>{x.values.as<T>(), cols}, packs_of_eight(x.values));
  const Quantized& q = x.codes;
  f(CodedRows{q.codes.u8(), q.descales.u8(), cols, q.descales.shape[1]}, packs_of_eight(q.codes));
}

}  // namespace octet::cuda
