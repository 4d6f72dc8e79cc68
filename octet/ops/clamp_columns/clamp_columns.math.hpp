#pragma once

#include "octet/ops/adapter_blocks/adapter_blocks.math.hpp"
#include "octet/ops/clamp_columns/clamp_columns.hpp"

namespace octet::ops {

/// Up to eight neighbouring values, whose bits are one byte: clamps them, and returns the bits of those outside.
OCTET_HD unsigned clamp_eight(float* x, int count, float limit) {
  unsigned outside = 0;
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int i = 0; i < 8; ++i) {
    if (i >= count) continue;
    outside |= unsigned(x[i] > limit || x[i] < -limit) << i;
    x[i] = smaller(limit, larger(-limit, x[i]));
  }
  return outside;
}
/// Clears those whose bit is set.
OCTET_HD void clear_eight(float* x, int count, unsigned outside) {
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int i = 0; i < 8; ++i)
    if (i < count && (outside >> i & 1) != 0) x[i] = 0;
}

/// The memory of both matrices, from the first of the columns on.
template <class T>
struct ClampPlaces {
  const T* from;
  T* to;
  std::int64_t from_row, to_row, columns, bytes;  // values of a row; bytes of bits per row

  explicit ClampPlaces(const CopyColumns& c)
      : from(c.from.as<T>() + c.from_column),
        to(c.to.as<T>() + c.to_column),
        from_row(c.from.shape[1]),
        to_row(c.to.shape[1]),
        columns(c.columns),
        bytes(clamp_bytes(c.columns)) {}
};

}  // namespace octet::ops
