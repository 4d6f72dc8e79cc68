#pragma once

// Only for *.cuda.cu files: row bodies that read a saved activation, decoded as it is loaded.

#include "octet/numerics/scale.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/ops/quantize/saved.hpp"

namespace octet::cuda {

/// Codes of a matrix in memory, for a row body. Row bodies compute addresses from it, in constant memory, to save registers.
struct CodedRows;

/// A row of codes from column `at` on, a multiple of the block, with a scale per block of the row.
struct CodedRow {
  const CodedRows& rows;
  int row, at = 0;
  __device__ __forceinline__ CodedRow operator+(std::int64_t columns) const { return {rows, row, at + int(columns)}; }
};

template <int N>
struct CodedPackLanes;

struct CodedRows {
  static constexpr bool only_packs = true;  // whole blocks of columns: see check_saved()
  static constexpr bool loads_early = false;
  const std::uint8_t *codes, *scales;
  int cols, scales_of_row;
  template <int N>
  using Lanes = CodedPackLanes<N>;
  __device__ __forceinline__ CodedRow operator()(int row) const { return {*this, row}; }
};

/// Lanes that also load a pack of codes; all of it is in one block.
template <int N>
struct CodedPackLanes : PackLanes<N> {
  using PackLanes<N>::load;
  __device__ __forceinline__ Pack<N> load(const CodedRow& x, std::int64_t i) const {
    const int at = x.at + int(i);
    const std::uint8_t* const from = row_of(x.rows.codes, x.row, x.rows.cols) + at;
    const float scale = decode_e8m0(row_of(x.rows.scales, x.row, x.rows.scales_of_row)[at / ops::saved_block]);
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
  static constexpr bool only_packs = false;
  static constexpr bool loads_early = true;  // loads of several rows have registers enough, and do nothing else
  const T* values;
  int cols;
  template <int N>
  using Lanes = PackLanes<N>;
  __device__ __forceinline__ const T* operator()(int row) const { return row_of(values, row, cols); }
};

template <class T>
struct SavingRows;

/// Columns of a row from `at` on, whose values are encoded as they are loaded. Each thread finds the maximum of its pack's block, which is
/// in the L1 cache: no thread waits for another, and loading twice stores the same codes.
template <class T>
struct SavingRow {
  const SavingRows<T>& rows;
  int row, at = 0;
  __device__ __forceinline__ SavingRow operator+(std::int64_t columns) const { return {rows, row, at + int(columns)}; }
};

/// The largest magnitude of a block; NaN is ignored. One load at a time: registers are scarce, and other warps hide the latency.
__device__ __forceinline__ float block_top(const Bf16* block) {
  unsigned most = 0;
#pragma unroll 1
  for (int i = 0; i < ops::saved_block; i += 8) {
    const uint4 q = __ldg(reinterpret_cast<const uint4*>(block + i));
    most = larger_magnitudes(q.x, larger_magnitudes(q.y, larger_magnitudes(q.z, larger_magnitudes(q.w, most))));
  }
  return __uint_as_float(max(most & 0x7FFFu, most >> 16 & 0x7FFFu) << 16);
}
__device__ __forceinline__ float block_top(const float* block) {
  float most = 0;
#pragma unroll 1
  for (int i = 0; i < ops::saved_block; i += 4) {
    const float4 q = __ldg(reinterpret_cast<const float4*>(block + i));
    most = fmaxf(fmaxf(fabsf(q.x), fabsf(q.y)), fmaxf(fmaxf(fabsf(q.z), fabsf(q.w)), most));
  }
  return most;
}

template <int N>
struct SavingPackLanes : PackLanes<N> {
  using PackLanes<N>::load;
  template <class T>
  __device__ __forceinline__ Pack<N> load(const SavingRow<T>& x, std::int64_t i) const {
    const SavingRows<T>& rows = x.rows;
    const int at = x.at + int(i), block = at / ops::saved_block;
    const T* const values = row_of(rows.values, x.row, rows.cols);
    const auto s = block_scale(block_top(values + block * ops::saved_block), {.rule = ScaleRule::e8m0, .format_max = E4M3::max});
    const Pack<N> v = cuda::load<N>(values, at);
    std::uint8_t* const codes = row_of(rows.codes, x.row, rows.cols) + at;
    if constexpr (N == 8) {
      *reinterpret_cast<uint2*>(codes) = encode_eight<E4M3>(Eight<T>::of(v), [&](int) { return s.scale; });
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) codes[j] = encode<E4M3>(v.v[j] * s.scale);
    }
    if (at % ops::saved_block == 0) row_of(rows.scales, x.row, rows.scales_of_row)[block] = std::uint8_t(s.code);
    return v;
  }
};

template <class T>
struct SavingRows {
  static constexpr bool only_packs = true, loads_early = false;
  const T* values;
  std::uint8_t *codes, *scales;
  int cols, scales_of_row;
  template <int N>
  using Lanes = SavingPackLanes<N>;
  __device__ __forceinline__ SavingRow<T> operator()(int row) const { return {*this, row}; }
};

/// f(rows of x, whether packs of eight are aligned).
template <class T, class F>
void with_rows(const ops::Saved& x, const F& f) {
  const int cols = int(x.shape[1]);
  if (!x.coded()) return f(ValueRows<T>{x.values.as<T>(), cols}, packs_of_eight(x.values));
  if constexpr (!std::is_same_v<T, Fp16>) {  // see check_saved()
    const Quantized& q = x.codes;
    f(CodedRows{q.codes.u8(), q.descales.u8(), cols, int(q.descales.shape[1])}, packs_of_eight(q.codes));
  }
}

/// The same for ops of forward: where x has values and codes, loads also encode.
template <class T, class F>
void with_saving_rows(const ops::Saved& x, const F& f) {
  if (!x.values || !x.codes) return with_rows<T>(x, f);
  if constexpr (!std::is_same_v<T, Fp16>) {
    const Quantized& q = x.codes;
    f(SavingRows<T>{x.values.as<T>(), q.codes.u8(), q.descales.u8(), int(x.shape[1]), int(q.descales.shape[1])}, packs_of_eight(x.values));
  }
}

}  // namespace octet::cuda
