#pragma once

#include "octet/numerics/scale.hpp"
#include "octet/ops/shared_scale/shared_scale.hpp"

namespace octet::ops {

/// A SharedScale's tensors as addresses.
struct SharedScaleSlots {
  const float *amax, *skip;
  float *scale, *descale, format_max;
  std::int64_t count, stride;

  explicit SharedScaleSlots(const SharedScale& a)
      : amax(a.amax.f32()),
        skip(a.skip.f32()),
        scale(a.scale.f32()),
        descale(a.descale.f32()),
        format_max(a.format_max),
        count(a.amax.count()),
        stride(a.scale.shape[1]) {}

  /// Slot i, from the largest of all maxima.
  OCTET_HD void update(std::int64_t i, float most) const {
    float& s = scale[i * stride];
    s = scale_from_history(most, format_max, s);
    descale[i * stride] = 1.0f / s;
  }
};

}  // namespace octet::ops
