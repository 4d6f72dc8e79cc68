#include "octet/ops/stored/cuda/encode.cuh"
#include "octet/ops/stored/stored.kernels.hpp"

namespace octet::cuda {
namespace {

struct LoadGroup {
  ops::StoredView from;
  __device__ __forceinline__ void operator()(std::int64_t group, GroupLanes::Group& x) const {
    ops::load_group(GroupLanes{}, from, group, x);
  }
};

__global__ void __launch_bounds__(group_threads) decode_stored_kernel(ops::StoredView from, ops::StoredView to) {
  GroupLanes::Group x;
  ops::load_group(GroupLanes{}, from, own_group(), x);
  ops::store_group(GroupLanes{}, to, own_group(), x, ops::Nearest{});
}

}  // namespace

void decode_stored(Queue queue, const Stored& s, const Tensor& values) {
  decode_stored_kernel<<<group_blocks(s.count()), group_threads, 0, queue>>>(ops::view_of(s), ops::view_of(Stored::plain(values)));
  launched("decode_stored");
}

void encode_stored(Queue queue, const ops::EncodeStored& a) {
  const LoadGroup load{ops::view_of(Stored::plain(a.values))};
  if (a.maximum) store_maximum(queue, a.values.count(), a.maximum, load);
  encode_groups(queue, a.out, a.tiny, a.maximum, load);
}

}  // namespace octet::cuda
