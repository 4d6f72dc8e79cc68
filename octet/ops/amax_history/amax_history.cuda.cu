#include "octet/ops/amax_history/amax_history.kernels.hpp"
#include "octet/ops/amax_history/amax_history.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

// One thread, one slot.
struct SlotLanes {
  using Value = float;
  OCTET_HD float load(const float* p, std::int64_t at) const { return p[at]; }
  OCTET_HD void store(float* p, std::int64_t at, float v) const { p[at] = v; }
};

struct Table {
  float *history, *scale, *descale;
  const std::int32_t* places;
  const float *format_max, *skip;
  std::int64_t length, slots, stride;
  float headroom;
  bool most_recent;
};

__global__ void amax_history_kernel(const Table t) {
  const std::int64_t slot = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= t.slots) return;
  if (t.skip != nullptr && *t.skip != 0) {
    t.history[slot] = 0;
    return;
  }
  const float amax = ops::advance_slots(SlotLanes{}, slot, t.history, t.length, t.stride, t.most_recent);
  const std::int32_t place = t.places[slot];
  float& scale = t.scale[place];
  scale = scale_from_history(amax, t.format_max[slot] * t.headroom, scale);
  t.descale[place] = 1.0f / scale;
}

}  // namespace

void advance_amax_history(Queue queue, const ops::AmaxHistory& a) {
  const Table table{a.history.f32() + a.first,
                    a.scale.f32(),
                    a.descale.f32(),
                    a.places.as<std::int32_t>(),
                    a.format_max.f32(),
                    a.skip.f32(),
                    a.history.shape[0],
                    a.scale.shape[0],
                    a.history.shape[1],
                    ops::power_of_two(-a.margin),
                    a.choice == ops::AmaxChoice::most_recent};
  if (table.slots == 0) return;
  constexpr int threads = 64;
  amax_history_kernel<<<unsigned(ceil_div(table.slots, threads)), threads, 0, queue>>>(table);
  launched("amax_history");
}

}  // namespace octet::cuda
