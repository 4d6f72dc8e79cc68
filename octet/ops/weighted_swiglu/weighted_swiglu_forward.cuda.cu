#include "octet/ops/quantize/cuda/coded.cuh"
#include "octet/ops/weighted_swiglu/limit.cuh"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

template <class T, class Rows, class Limit>
struct WeightedSwiGlu {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs;
  Rows x;
  const float* w;
  const std::int32_t* source;
  int cols;
  Limit limit;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const int choice = source[row];
    if (choice < 0 && branches_at_padding<Rows, Limit>) {
      out[0] = Pack<N>::all(0);
      return;
    }
    ops::weighted_swiglu_row<Limit::is_any>(typename Rows::template Lanes<N>{col}, cols, limit(), w[max(choice, 0)], x(row),
                                            Kept<N>{&out[0]});
    if (choice < 0) out[0] = Pack<N>::all(0);
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
      with_limit<T>(limit, [&]<class Limit>(Limit most) {
        const WeightedSwiGlu<T, Rows, Limit> make{rows, w.f32(), map.source.as<std::int32_t>(), int(y.shape[1]), most};
        fill_sink<T>(queue, y, make, aligned);
      });
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
