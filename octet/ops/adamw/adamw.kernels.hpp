#pragma once

#include "octet/ops/adamw/adamw.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// Whether kernels for plain values update this parameter: everything f32 or bf16, and both moments alike.
[[gnu::always_inline]] inline bool is_plain(const AdamWParameter& p) {
  const auto plain = [](const Stored& s) { return s.storage == Storage::f32 || s.storage == Storage::bf16; };
  return plain(p.value) && plain(p.grad) && plain(p.moments.m) && p.moments.m.storage == p.moments.v.storage;
}
inline CutPositions positions_of(const AdamWParameter& p) { return {p.places ? p.places.as<CutPiece>() : nullptr}; }
/// f.operator()<P, G, M>() for the types of value, gradient and both moments of a plain parameter.
template <class F>
void with_adamw_types(const AdamWParameter& p, const F& f) {
  dispatch<float, Bf16>(p.value.codes.dtype, "adamw: value", [&]<class P>() {
    dispatch<float, Bf16>(p.grad.codes.dtype, "adamw: grad", [&]<class G>() {
      dispatch<float, Bf16>(p.moments.m.codes.dtype, "adamw: moments", [&]<class M>() { f.template operator()<P, G, M>(); });
    });
  });
}
}  // namespace octet::ops

/// maxima: f32 [3 x parameters], 0, or empty if no scale is per tensor.
OCTET_KERNEL(adamw, const ops::AdamW&, const Tensor& maxima)
