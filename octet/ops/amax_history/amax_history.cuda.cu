#include "octet/ops/amax_history/amax_history.kernels.hpp"
#include "octet/ops/amax_history/amax_history.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

// A thread has one slot.
struct SlotLanes {
  using Value = float;
  OCTET_HD float load(const float* p, std::int64_t at) const { return p[at]; }
  OCTET_HD void store(float* p, std::int64_t at, float v) const { p[at] = v; }
};

struct Table {
  ops::History history;
  float *scale, *descale;
  const std::int32_t* places;
  const float *format_max, *skip;
  std::int64_t slots;
  float headroom;
  bool most_recent;
};

constexpr int block_slots = 32, parts = 32;  // the rows of a block's slots are divided among `parts` warps

__global__ void __launch_bounds__(block_slots* parts) amax_history_kernel(const Table t) {
  __shared__ float largest[parts][block_slots];
  const int x = int(threadIdx.x) % block_slots, part = int(threadIdx.x) / block_slots;
  const std::int64_t slot = std::int64_t(blockIdx.x) * block_slots + x;
  const bool here = slot < t.slots, skips = t.skip != nullptr && *t.skip != 0;
  const ops::History& h = t.history;
  const std::int64_t each = (h.length + parts - 2) / parts, begin = 1 + part * each, end = min(begin + each, h.length);
  const float last = here ? h.rows[slot] : 0, next = here && end < h.length && begin < end ? h.rows[end * h.stride + slot] : last;
  __syncthreads();  // the next part's first row and row 0 have been read
  if (here && !skips) largest[part][x] = ops::move_rows(SlotLanes{}, slot, h, begin, end, next, last != 0);
  __syncthreads();
  if (!here || part != 0) return;
  h.rows[slot] = 0;
  if (skips) return;
  float most = 0;
  for (int i = 0; i < parts; ++i) most = larger(largest[i][x], most);
  const float amax = ops::deciding_maximum(last, most, t.most_recent);
  const std::int32_t place = t.places[slot];
  float& scale = t.scale[place];
  scale = scale_from_history(amax, t.format_max[slot] * t.headroom, scale);
  t.descale[place] = 1.0f / scale;
}

}  // namespace

void advance_amax_history(Queue queue, const ops::AmaxHistory& a) {
  const Table table{{a.history.f32() + a.first, a.history.shape[0], a.history.shape[1]},
                    a.scale.f32(),
                    a.descale.f32(),
                    a.places.as<std::int32_t>(),
                    a.format_max.f32(),
                    a.skip.f32(),
                    a.scale.shape[0],
                    ops::power_of_two(-a.margin),
                    a.choice == ops::AmaxChoice::most_recent};
  if (table.slots == 0) return;
  amax_history_kernel<<<unsigned(ceil_div(table.slots, block_slots)), block_slots * parts, 0, queue>>>(table);
  launched("amax_history");
}

}  // namespace octet::cuda
