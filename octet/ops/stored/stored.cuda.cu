#include "octet/ops/stored/cuda/group.cuh"
#include "octet/ops/stored/stored.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, groups_a_block = threads / GroupLanes::threads;

__device__ __forceinline__ std::int64_t own_group() {
  return std::int64_t(blockIdx.x) * groups_a_block + threadIdx.x / GroupLanes::threads;
}
unsigned blocks_of(std::int64_t count) {
  const std::int64_t blocks = ceil_div(ops::groups_of(count), std::int64_t(groups_a_block));
  return unsigned(blocks > 0 ? blocks : 1);  // the scales of an empty tensor are written, too
}

__global__ void __launch_bounds__(threads) decode_stored_kernel(ops::StoredView from, ops::StoredView to) {
  GroupLanes::Group x;
  ops::load_group(GroupLanes{}, from, own_group(), x);
  ops::store_group(GroupLanes{}, to, own_group(), x, ops::Nearest{});
}

__global__ void __launch_bounds__(threads) stored_maximum_kernel(ops::StoredView from, float* maximum) {
  GroupLanes::Group x;
  ops::load_group(GroupLanes{}, from, own_group(), x);
  const float most = block_fold<threads>(ops::group_amax(GroupLanes{}, x), MaxFold{});
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(maximum), __float_as_int(most));  // bits of floats >= 0 are ordered as they are
}

__global__ void __launch_bounds__(threads)
    encode_stored_kernel(ops::StoredView from, ops::StoredView to, const float* maximum, float* scales) {
  if (maximum != nullptr) {
    to.next_descale = ops::tensor_descale_for(to.storage, *maximum);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      scales[0] = to.next_descale;
      scales[1] = ops::stored_amax(to.storage, *maximum, to.next_descale, false);
    }
  }
  GroupLanes::Group x;
  ops::load_group(GroupLanes{}, from, own_group(), x);
  ops::store_group(GroupLanes{}, to, own_group(), x, ops::Nearest{});
}

}  // namespace

void decode_stored(Queue queue, const Stored& s, const Tensor& values) {
  decode_stored_kernel<<<blocks_of(s.count()), threads, 0, queue>>>(ops::view_of(s), ops::view_of(Stored::plain(values)));
  launched("decode_stored");
}

void encode_stored(Queue queue, const ops::EncodeStored& a) {
  const ops::StoredView from = ops::view_of(Stored::plain(a.values));
  if (a.maximum) {
    stored_maximum_kernel<<<blocks_of(from.count), threads, 0, queue>>>(from, a.maximum.f32());
    launched("encode_stored: maximum");
  }
  encode_stored_kernel<<<blocks_of(from.count), threads, 0, queue>>>(from, ops::view_of(a.out, a.tiny), a.maximum.f32(),
                                                                     a.maximum ? a.out.scales.f32() : nullptr);
  launched("encode_stored");
}

}  // namespace octet::cuda
