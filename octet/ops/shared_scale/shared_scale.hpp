#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// One scale for many tensors, from the largest of their maxima:  scale[n] = format_max / max_n amax[n],  descale[n] = 1 / scale[n],
/// unless that maximum is 0, infinite or NaN: then as before. amax: f32 [N]; scale, descale: f32 [N, 64], of which [n, 0] count; skip:
/// f32 [1], not 0: nothing changes.
struct SharedScale {
  Tensor amax, scale, descale, skip;
  float format_max;
};
/// Throws ContractError on other shapes.
void update_shared_scale(Stream&, const SharedScale&);

}  // namespace octet::ops
