#include "octet/ops/stored/cuda/group.cuh"
#include "octet/ops/stored_sum/stored_sum.kernels.hpp"
#include "octet/ops/stored_sum/stored_sum.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, groups_a_block = threads / GroupLanes::threads;

using Counter = unsigned long long;

// A warp's counts, added by its first thread.
__device__ __forceinline__ void add_counts(unsigned largest, unsigned flushed, Counter* counts) {
  largest = __reduce_add_sync(~0u, largest), flushed = __reduce_add_sync(~0u, flushed);
  if (threadIdx.x % 32 != 0) return;
  if (largest > 0) atomicAdd(&counts[0], Counter(largest));
  if (flushed > 0) atomicAdd(&counts[1], Counter(flushed));
}

template <class In, class Out>
__global__ void __launch_bounds__(threads)
    stored_sum_kernel(const __grid_constant__ ops::Addends parts, ops::StoredView sum, bool adds, Counter* counts) {
  const std::int64_t group = std::int64_t(blockIdx.x) * groups_a_block + threadIdx.x / GroupLanes::threads;
  if (sum.storage == Storage::e4m3_tensor) sum.next_scale = 1.0f / sum.tensor_descale();
  GroupLanes::Group x;
  ops::sum_parts(In{}, Out{}, GroupLanes{}, parts, sum, adds, group, x);
  ops::store_group(Out{}, GroupLanes{}, sum, group, x, ops::Nearest{});
  if (counts == nullptr) return;
  unsigned largest = 0, flushed = 0;
  GroupLanes{}.each_pack(sum.count, group, [&](int, EightCursor at) {
    const std::uint8_t* const codes = sum.as<std::uint8_t>() + at.at;  // this thread has stored them
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < at.count) largest += ops::is_largest(codes[i]), flushed += ops::is_flushed(codes[i], x.v[0].v[i]);
  });
  add_counts(largest, flushed, counts);
}

}  // namespace

void stored_sum(Queue queue, const ops::StoredSum& a) {
  const ops::Addends parts = ops::addends_of(a);
  const ops::StoredView sum = ops::view_of(a.sum);
  if (sum.count == 0) return;
  const unsigned blocks = unsigned(ceil_div(ops::groups_of(sum.count), std::int64_t(groups_a_block)));
  ops::with_sum_codec(parts.parts.storage, [&](auto in) {
    ops::with_sum_codec(sum.storage, [&](auto out) {
      stored_sum_kernel<decltype(in), decltype(out)><<<blocks, threads, 0, queue>>>(parts, sum, a.adds, a.counts.as<Counter>());
    });
  });
  launched("stored_sum");
}

}  // namespace octet::cuda
