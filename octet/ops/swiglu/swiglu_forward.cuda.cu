#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"

namespace octet::cuda {
namespace {

template <class T>
struct SwiGlu {
  static constexpr int outputs = 1;
  const T* x;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::swiglu_row(PackLanes<N>{col}, cols, row_of(x, row, 2 * cols), Kept<N>{&out[0]});
  }
};

}  // namespace

void swiglu_forward(Queue queue, const Tensor& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    fill_sink<T>(queue, y, SwiGlu<T>{x.as<T>(), int(y.shape[1])}, packs_of_eight(x));
  });
}

}  // namespace octet::cuda
