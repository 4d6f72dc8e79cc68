#pragma once

// Only for *.cuda.cu files: what kernels of stored keys are told.

#include <algorithm>

#include "octet/ops/key_cache/key_cache.kernels.hpp"

namespace octet::cuda {

struct Places {
  const std::int32_t *sequence, *place;
};
inline Places places_of(const ops::TokenPlaces& at) { return {at.sequence.as<std::int32_t>(), at.place.as<std::int32_t>()}; }

struct Sizes {
  int heads, kv_heads, d, dv, columns, sequences;
  std::int64_t capacity;
  std::int64_t window = 0;
  __device__ __forceinline__ std::int64_t first_row(int sequence, int head) const {
    return (std::int64_t(sequence) * kv_heads + head) * capacity;
  }
};
inline Sizes sizes_of(const ops::QkvShape& h, const ops::KeyRows& r) {
  return {int(h.heads), int(h.kv_heads), int(h.head_dim), int(h.value_dim()), int(h.columns()), int(r.sequences), r.capacity};
}

// f<T, Row>() of the types of qkv and of the rows.
template <class F>
void with_types(const Tensor& qkv, const ops::KeyRows& rows, const F& f) {
  dispatch<float, Bf16, Fp16>(qkv.dtype, "key cache", [&]<class T>() {
    if (rows.coded()) f.template operator()<T, E4M3>();
    else f.template operator()<T, T>();
  });
}

inline constexpr int most_columns = 512;

inline void require_limits(const Tensor& qkv, const ops::QkvShape& heads) {
  constexpr std::int64_t most_tokens = 65535;  // blocks along a grid's second dimension
  if (std::max(heads.head_dim, heads.value_dim()) > most_columns || qkv.shape[0] > most_tokens)
    throw DeviceError(format("attention over stored keys on a GPU takes heads of up to {} and {} tokens at once, got {} and {}",
                             most_columns, most_tokens, std::max(heads.head_dim, heads.value_dim()), qkv.shape[0]));
}

}  // namespace octet::cuda
