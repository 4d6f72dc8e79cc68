#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "octet/ops/quantize/cuda/coded.cuh"

namespace octet::cuda {
namespace {

template <class T, class Rows>
struct Gelu {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs;
  Rows x;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::gelu_row(typename Rows::template Lanes<N>{col}, cols, x(row), Kept<N>{&out[0]});
  }
};

template <class T, class Rows>
struct GeluGradient {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs;
  const T* dy;
  Rows x;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::gelu_backward_row(typename Rows::template Lanes<N>{col}, cols, row_of(dy, row, cols), x(row), Kept<N>{&out[0]});
  }
};

}  // namespace

void gelu_forward(Queue queue, const ops::Saved& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    with_saving_rows<T>(x, [&]<class Rows>(const Rows& rows, bool aligned) {
      fill_sink<T>(queue, y, Gelu<T, Rows>{rows, int(x.shape[1])}, aligned);
    });
  });
}

void gelu_backward(Queue queue, const Tensor& dy, const ops::Saved& x, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    with_rows<T>(x, [&]<class Rows>(const Rows& rows, bool aligned) {
      fill_sink<T>(queue, dx, GeluGradient<T, Rows>{dy.as<T>(), rows, int(x.shape[1])}, packs_of_eight(dy) && aligned);
    });
  });
}

}  // namespace octet::cuda
