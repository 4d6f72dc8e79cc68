#pragma once

// Only for *.cuda.cu files: groups of values to codes, wherever the values come from.

#include "octet/ops/stored/cuda/group.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

inline constexpr int group_threads = 256, groups_a_block = group_threads / GroupLanes::threads;

__device__ __forceinline__ std::int64_t own_group() {
  return std::int64_t(blockIdx.x) * groups_a_block + threadIdx.x / GroupLanes::threads;
}
/// Blocks for all groups of `count` values; at least one, because the scales of an empty tensor are written, too.
inline unsigned group_blocks(std::int64_t count) {
  const std::int64_t blocks = ceil_div(ops::groups_of(count), std::int64_t(groups_a_block));
  return unsigned(blocks > 0 ? blocks : 1);
}

template <class Make>
__global__ void __launch_bounds__(group_threads) stored_maximum_kernel(const Make make, float* maximum) {
  GroupLanes::Group x;
  make(own_group(), x);
  const float most = block_fold<group_threads>(ops::group_amax(GroupLanes{}, x), MaxFold{});
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(maximum), __float_as_int(most));  // bits of floats >= 0 are ordered as they are
}

template <class Make>
__global__ void __launch_bounds__(group_threads)
    encode_groups_kernel(const Make make, ops::StoredView to, const float* maximum, float* scales) {
  if (maximum != nullptr) {
    const float descale = ops::tensor_descale_for(to.storage, *maximum);
    to.next_scale = ops::reciprocal_of_power(descale);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      scales[0] = descale;
      scales[1] = ops::stored_amax(to.storage, *maximum, descale, false);
    }
  }
  GroupLanes::Group x;
  make(own_group(), x);
  ops::store_group(GroupLanes{}, to, own_group(), x, ops::Nearest{});
}

/// The largest magnitude of `count` values to `maximum`, f32 [1], 0 before. make(group, x) gives a thread its values of a group, 0 beyond
/// the end.
template <class Make>
void store_maximum(Queue queue, std::int64_t count, const Tensor& maximum, const Make& make) {
  stored_maximum_kernel<<<group_blocks(count), group_threads, 0, queue>>>(make, maximum.f32());
  launched("stored_maximum_kernel");
}

/// The nearest codes of the values. `maximum`: of the whole tensor, for per-tensor scales; otherwise empty.
template <class Make>
void encode_groups(Queue queue, const Stored& out, Tiny tiny, const Tensor& maximum, const Make& make) {
  encode_groups_kernel<<<group_blocks(out.count()), group_threads, 0, queue>>>(make, ops::view_of(out, tiny), maximum.f32(),
                                                                               maximum ? out.scales.f32() : nullptr);
  launched("encode_groups_kernel");
}

}  // namespace octet::cuda
