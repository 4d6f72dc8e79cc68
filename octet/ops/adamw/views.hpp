#pragma once

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/stored_update.math.hpp"

namespace octet::ops {

/// Parameter number i of a launch as the kernels hold it; maxima: see adamw.kernels.hpp.
[[gnu::always_inline]] inline AdamWViews views_of(const AdamWParameter& p, std::size_t i, const Tensor& maxima) {
  return {.value = view_of(p.value),
          .grad = view_of(p.grad),
          .m = view_of(p.moments.m),
          .v = view_of(p.moments.v, Tiny::keep),
          .gradient_amax = p.gradient_amax ? p.gradient_amax.f32() : nullptr,
          .maxima = maxima ? maxima.f32() + 3 * i : nullptr,
          .key = p.key,
          .first = p.first,
          .places = positions_of(p),
          .weight_decay = float(p.weight_decay)};
}

}  // namespace octet::ops
