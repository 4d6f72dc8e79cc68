#include "octet/ops/accumulate/accumulate.kernels.hpp"
#include "octet/ops/accumulate/accumulate.math.hpp"
#include "octet/ops/stored/cuda/group.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, groups_of_block = threads / GroupLanes::threads;

__device__ __forceinline__ std::int64_t own_group() {
  return std::int64_t(blockIdx.x) * groups_of_block + threadIdx.x / GroupLanes::threads;
}

// Each 16 threads add a group of 128 values. whole: all groups of a warp exist, or none.
template <class T, bool whole>
__global__ void __launch_bounds__(threads)
    add_blocks_kernel(const T* x, const ops::StoredView sum, std::uint64_t key, const std::int64_t* numbers) {
  if (whole && own_group() >= ops::groups_of(sum.count)) return;
  const ops::AccumulateDraws draws(key, numbers);
  ops::accumulate_group(ops::E4m3Codec{}, GroupLanesOf<whole>{}, x, sum, draws.adds, own_group(), DrawnWords{draws.key, draws.stream});
}

// The largest of all sums. Bits of floats that are not negative are ordered as the floats.
template <class T>
__global__ void __launch_bounds__(threads)
    largest_sum_kernel(const T* x, const ops::StoredView sum, const std::int64_t* numbers, unsigned* most) {
  GroupLanes::Group v;
  ops::sums_of_group(ops::E4m3TensorCodec{}, GroupLanes{}, x, sum, ops::AccumulateDraws(0, numbers).adds, own_group(), v);
  const float own = block_fold<threads>(ops::group_amax(GroupLanes{}, v), MaxFold{});
  if (threadIdx.x == 0) atomicMax(most, __float_as_uint(own));
}
template <class T>
__global__ void __launch_bounds__(threads)
    add_tensor_kernel(const T* x, ops::StoredView sum, const std::int64_t* numbers, const float* most) {
  sum.next_scale = ops::reciprocal_of_power(ops::tensor_descale_for(Storage::e4m3_tensor, *most));
  ops::accumulate_group(ops::E4m3TensorCodec{}, GroupLanes{}, x, sum, ops::AccumulateDraws(0, numbers).adds, own_group(), ops::Nearest{});
}
__global__ void set_scale_kernel(const float* most, float* scales) {
  scales[0] = ops::tensor_descale_for(Storage::e4m3_tensor, *most);
  scales[1] = ops::stored_amax(Storage::e4m3_tensor, *most, scales[0], false);
}

unsigned grid(const ops::Accumulate& a) { return unsigned(ceil_div(ops::groups_of(a.sum.count()), std::int64_t(groups_of_block))); }

}  // namespace

void accumulate_blocks(Queue queue, const ops::Accumulate& a) {
  dispatch<float, Bf16>(a.x.dtype, "accumulate", [&]<class T>() {
    auto* const kernel = a.sum.count() % (2 * storage_block) == 0 ? add_blocks_kernel<T, true> : add_blocks_kernel<T, false>;
    kernel<<<grid(a), threads, 0, queue>>>(a.x.as<T>(), ops::view_of(a.sum), a.key, a.draws.as<std::int64_t>());
  });
  launched("accumulate");
}

void accumulate_tensor(Queue queue, const ops::Accumulate& a, const Tensor& maxima) {
  float* const most = maxima.f32();
  const auto* const numbers = a.draws.as<std::int64_t>();
  require(cudaMemsetAsync(most, 0, sizeof(float), queue), "cudaMemsetAsync");
  dispatch<float, Bf16>(a.x.dtype, "accumulate", [&]<class T>() {
    largest_sum_kernel<T><<<grid(a), threads, 0, queue>>>(a.x.as<T>(), ops::view_of(a.sum), numbers, reinterpret_cast<unsigned*>(most));
    add_tensor_kernel<T><<<grid(a), threads, 0, queue>>>(a.x.as<T>(), ops::view_of(a.sum), numbers, most);
  });
  set_scale_kernel<<<1, 1, 0, queue>>>(most, a.sum.scales.f32());
  launched("accumulate");
}

}  // namespace octet::cuda
