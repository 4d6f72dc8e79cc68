#include "octet/ops/normal/normal.kernels.hpp"
#include "octet/ops/normal/normal.math.hpp"
#include "octet/ops/stored/cuda/encode.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

/// The four values of a draw.
__device__ __forceinline__ Pack<4> normal_values(std::uint64_t key, std::int64_t draw, float deviation) {
  const RandomWords r = philox(key, std::uint64_t(draw));
  const auto one = ops::normal_pair(uniform(r.w[0]), uniform(r.w[1])), other = ops::normal_pair(uniform(r.w[2]), uniform(r.w[3]));
  return Pack<4>{one.first, one.second, other.first, other.second} * deviation;
}

/// A thread makes the four values of a draw.
template <class T>
__global__ void normal_kernel(std::int64_t count, std::uint64_t key, float deviation, T* x, std::int64_t first_draw) {
  const std::int64_t draw = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, first = 4 * draw;
  if (first >= count) return;
  const Pack<4> values = normal_values(key, first_draw + draw, deviation);
  if (first + 4 <= count) return store(x, first, values);
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (first + i < count) store(x, first + i, Pack<1>{values.v[i]});
}

__device__ __forceinline__ float normal_value(std::uint64_t key, std::int64_t place, float deviation) {
  const Pack<4> draw = normal_values(key, place / 4, deviation);
  float out = draw.v[0];
#pragma unroll
  for (int i = 1; i < 4; ++i)
    if (place % 4 == i) out = draw.v[i];
  return out;
}

/// A thread's eight values of a group of a slice.
struct NormalGroup {
  CutPositions places;
  std::int64_t first, count;
  std::uint64_t key;
  float deviation;

  __device__ __forceinline__ void operator()(std::int64_t group, GroupLanes::Group& x) const {
    GroupLanes{}.each_pack(count, group, x, [&](int pack, EightCursor c) {
      const std::int64_t at = first + c.at, place = places(at);
      if (place % 4 != 0 || places.neighbours(at) < c.count) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (i < c.count) x.v[pack].v[i] = normal_value(key, places(at + i), deviation);
        return;
      }
      const Pack<4> low = normal_values(key, place / 4, deviation), high = normal_values(key, place / 4 + 1, deviation);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < c.count) x.v[pack].v[i] = low.v[i];
        if (i + 4 < c.count) x.v[pack].v[i + 4] = high.v[i];
      }
    });
  }
};

}  // namespace

void fill_normal(Queue queue, std::uint64_t key, float deviation, const Tensor& x, std::int64_t first) {
  constexpr int threads = 256;
  if (x.count() == 0) return;
  dispatch<float, Bf16>(x.dtype, "fill_normal", [&]<class T>() {
    normal_kernel<<<unsigned(ceil_div(x.count(), 4 * threads)), threads, 0, queue>>>(x.count(), key, deviation, x.as<T>(), first / 4);
  });
  launched("normal_kernel");
}

void fill_stored_normal(Queue queue, const ops::FillStoredNormal& a) {
  const Stored& out = a.out.stored;
  const std::int64_t whole = a.out.whole.count();
  if (a.maximum) store_maximum(queue, whole, a.maximum, NormalGroup{a.places, 0, whole, a.key, a.deviation});
  encode_groups(queue, out, Tiny::flush, a.maximum, NormalGroup{a.places, a.out.first, out.count(), a.key, a.deviation});
}

}  // namespace octet::cuda
