#include "octet/ops/quantize/cuda/coded.cuh"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

// Without a limit it is infinite: one kernel for both, with the bits of either.
template <class T, class Rows>
struct WeightedSwiGlu {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs;
  Rows x;
  const float* w;
  const std::int32_t* source;
  int cols;
  float limit;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const int choice = source[row];
    if (choice < 0) out[0] = Pack<N>::all(0);
    else ops::weighted_swiglu_row<true>(typename Rows::template Lanes<N>{col}, cols, limit, w[choice], x(row), Kept<N>{&out[0]});
  }
};

// A block for each row.
__global__ void clear_rows_kernel(const std::int32_t* source, std::int64_t bytes, std::uint8_t* x) {
  if (source[blockIdx.x] >= 0) return;
  for (std::int64_t i = threadIdx.x; i < bytes; i += blockDim.x) x[blockIdx.x * bytes + i] = 0;
}

}  // namespace

void weighted_swiglu_forward(Queue queue, const ops::Saved& x, const Tensor& w, const ops::ExpertMap& map, float limit,
                             const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "weighted_swiglu", [&]<class T>() {
    with_saving_rows<T>(x, [&]<class Rows>(const Rows& rows, bool aligned) {
      fill_sink<T>(
          queue, y,
          WeightedSwiGlu<T, Rows>{rows, w.f32(), map.source.as<std::int32_t>(), int(y.shape[1]), limit > 0 ? limit : __builtin_inff()},
          aligned);
    });
  });
}

void clear_rows_without_token(Queue queue, const Tensor& x, const ops::ExpertMap& map) {
  if (x.count() == 0) return;
  clear_rows_kernel<<<unsigned(map.rows()), 256, 0, queue>>>(map.source.as<std::int32_t>(), x.shape[1] * std::int64_t(size_of(x.dtype)),
                                                             x.u8());
  launched("clear_rows_without_token");
}

}  // namespace octet::cuda
