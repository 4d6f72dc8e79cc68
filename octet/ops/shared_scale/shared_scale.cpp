#include "octet/ops/shared_scale/shared_scale.hpp"

#include "octet/ops/shared_scale/shared_scale.kernels.hpp"
#include "octet/ops/shared_scale/shared_scale.math.hpp"

namespace octet::ops {

void update_shared_scale(Stream& stream, const SharedScale& a) {
  const std::int64_t n = a.amax.count();
  check(a.scale.shape.rank == 2 && a.scale.shape[0] == n && a.scale.shape == a.descale.shape && a.skip.count() == 1,
        "shared_scale: scale and descale must be [{}, stride] and skip [1], got {}, {} and {}", n, a.scale.shape, a.descale.shape,
        a.skip.shape);
  stream.count({.ops = 1, .bytes = 12.0 * double(n)});
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(update_shared_scale, stream.queue(), a);
  if (stream.device() != Device::cpu || a.skip.f32()[0] != 0) return;
  const SharedScaleSlots slots(a);
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = larger(slots.amax[i], most);
  for (std::int64_t i = 0; i < n; ++i) slots.update(i, most);
}

}  // namespace octet::ops
