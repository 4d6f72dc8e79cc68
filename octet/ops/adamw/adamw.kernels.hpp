#pragma once

#include "octet/ops/adamw/adamw.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// f.operator()<P, G, M>() for the types of value, gradient and both moments.
template <class F>
void with_adamw_types(const AdamWParameter& p, const F& f) {
  dispatch<float, Bf16>(p.value.dtype, "adamw: value", [&]<class P>() {
    dispatch<float, Bf16>(p.grad.dtype, "adamw: grad", [&]<class G>() {
      dispatch<float, Bf16>(p.moments.m.dtype, "adamw: moments", [&]<class M>() { f.template operator()<P, G, M>(); });
    });
  });
}
}  // namespace octet::ops

OCTET_KERNEL(adamw, const ops::AdamW&)
