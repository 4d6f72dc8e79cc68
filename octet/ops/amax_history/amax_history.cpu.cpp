#include "octet/ops/amax_history/amax_history.kernels.hpp"
#include "octet/ops/amax_history/amax_history.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void advance_amax_history(const ops::AmaxHistory& a) {
  const std::int64_t length = a.history.shape[0], slots = a.scale.shape[0], stride = a.history.shape[1];
  float* const history = a.history.f32() + a.first;
  if (a.skip && *a.skip.f32() != 0) {
    Lane{}.each(slots, [&](auto at) { Lane{}.store(history, at, Vec{}); });
    return;
  }
  const float headroom = ops::power_of_two(-a.margin);
  for_each(ceil_div(slots, width), length * width * 8, [&](std::int64_t pack) {
    const std::int64_t first = pack * width;
    const int n = slots - first < width ? int(slots - first) : width;
    const Part at{first, n};
    const Vec last = Lane{}.load(history, at);
    const Vec most = ops::move_rows(Lane{}, at, {history, length, stride}, 1, length, last, last != 0.0f);
    Lane{}.store(history, at, Vec{});
    const Vec amax = ops::deciding_maximum(last, most, a.choice == ops::AmaxChoice::most_recent);
    for (int i = 0; i < n; ++i) {
      const std::int32_t place = a.places.as<std::int32_t>()[first + i];
      float& scale = a.scale.f32()[place];
      scale = scale_from_history(amax[i], a.format_max.f32()[first + i] * headroom, scale);
      a.descale.f32()[place] = 1.0f / scale;
    }
  });
}

}  // namespace octet::cpu::OCTET_ISA
