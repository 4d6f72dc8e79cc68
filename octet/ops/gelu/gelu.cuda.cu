#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"

namespace octet::cuda {
namespace {

template <class T>
struct Gelu {
  static constexpr int outputs = 1;
  const T* x;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::gelu_row(PackLanes<N>{col}, cols, row_of(x, row, cols), Kept<N>{&out[0]});
  }
};

template <class T>
struct GeluGradient {
  static constexpr int outputs = 1;
  const T *dy, *x;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::gelu_backward_row(PackLanes<N>{col}, cols, row_of(dy, row, cols), row_of(x, row, cols), Kept<N>{&out[0]});
  }
};

}  // namespace

void gelu_forward(Queue queue, const Tensor& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    fill_sink<T>(queue, y, Gelu<T>{x.as<T>(), int(x.shape[1])}, packs_of_eight(x));
  });
}

void gelu_backward(Queue queue, const Tensor& dy, const Tensor& x, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    fill_sink<T>(queue, dx, GeluGradient<T>{dy.as<T>(), x.as<T>(), int(x.shape[1])}, packs_of_eight(dy) && packs_of_eight(x));
  });
}

}  // namespace octet::cuda
