#include "octet/ops/shared_scale/shared_scale.hpp"

#include "octet/numerics/scale.hpp"

namespace octet::ops {

void update_shared_scale(Stream& stream, const SharedScale& a) {
  const std::int64_t n = a.amax.count();
  check(a.scale.shape.rank == 2 && a.scale.shape[0] == n && a.scale.shape == a.descale.shape && a.skip.count() == 1,
        "shared_scale: scale and descale must be [{}, stride] and skip [1], got {}, {} and {}", n, a.scale.shape, a.descale.shape, a.skip.shape);
  stream.count({.ops = 1, .bytes = 12.0 * double(n)});
  if (stream.device() != Device::cpu || a.skip.f32()[0] != 0) return;
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = larger(a.amax.f32()[i], most);
  for (std::int64_t i = 0; i < n; ++i) {
    float& scale = a.scale.f32()[i * a.scale.shape[1]];
    scale = scale_from_history(most, a.format_max, scale);
    a.descale.f32()[i * a.scale.shape[1]] = 1.0f / scale;
  }
}

}  // namespace octet::ops
