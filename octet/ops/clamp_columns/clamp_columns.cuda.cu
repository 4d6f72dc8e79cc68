#include "octet/ops/clamp_columns/clamp_columns.kernels.hpp"
#include "octet/ops/clamp_columns/clamp_columns.math.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

struct Clamp {
  float limit;
  std::uint8_t* outside;  // or null
  __device__ __forceinline__ void operator()(float* x, int count, std::int64_t byte) const {
    const unsigned bits = ops::clamp_eight(x, count, limit);
    if (outside != nullptr) outside[byte] = std::uint8_t(bits);
  }
};
struct Clear {
  const std::uint8_t* outside;
  __device__ __forceinline__ void operator()(float* x, int count, std::int64_t byte) const { ops::clear_eight(x, count, outside[byte]); }
};

// A thread per eight values. `packed`: all eights are complete and aligned.
template <bool packed, class T, class F>
__global__ void change_eights_kernel(std::int64_t eights, ops::ClampPlaces<T> p, F change) {
  const std::int64_t at = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (at >= eights) return;
  const std::int64_t row = at / p.bytes, column = (at - row * p.bytes) * 8;
  const T* const from = p.from + row * p.from_row + column;
  T* const to = p.to + row * p.to_row + column;
  if constexpr (packed) {
    Pack<8> x = load<8>(from, 0);
    change(x.v, 8, at);
    store(to, 0, x);
  } else {
    const int count = int(p.columns - column < 8 ? p.columns - column : 8);
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = i < count ? ops::float_of_value(from[i]) : 0;
    change(x, count, at);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < count) to[i] = from_float<T>(x[i]);
  }
}

template <class F>
void change_eights(Queue queue, const ops::CopyColumns& c, const F& change) {
  const std::int64_t eights = c.from.shape[0] * ops::clamp_bytes(c.columns);
  if (eights == 0) return;
  const bool packed =
      c.columns % 8 == 0 && c.from_column % 8 == 0 && c.to_column % 8 == 0 && packs_of_eight(c.from) && packs_of_eight(c.to);
  const unsigned blocks = unsigned(ceil_div(eights, std::int64_t(threads)));
  dispatch<float, Bf16, Fp16>(c.from.dtype, "clamp_columns", [&]<class T>() {
    const ops::ClampPlaces<T> places(c);
    if (packed) change_eights_kernel<true><<<blocks, threads, 0, queue>>>(eights, places, change);
    else change_eights_kernel<false><<<blocks, threads, 0, queue>>>(eights, places, change);
  });
  launched("clamp_columns");
}

}  // namespace

void clamp_columns(Queue queue, const ops::ClampColumns& a) {
  change_eights(queue, a.columns, Clamp{a.limit, a.outside ? a.outside.u8() : nullptr});
}

void clamp_columns_backward(Queue queue, const ops::ClampColumnsBackward& a) { change_eights(queue, a.columns, Clear{a.outside.u8()}); }

}  // namespace octet::cuda
