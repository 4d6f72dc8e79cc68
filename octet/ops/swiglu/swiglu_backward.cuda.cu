#include "octet/ops/quantize/cuda/coded.cuh"
#include "octet/ops/swiglu/gate.cuh"
#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"

namespace octet::cuda {
namespace {

/// Gradients of the gate (first output) and of `up`, which are as far apart as x's halves.
template <class T, class Rows, class Gate>
struct SwiGluHalves {
  static constexpr int outputs = 2;
  const T* dy;
  Rows x;
  int cols;
  Gate gate;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[2]) const {
    ops::swiglu_backward_row(typename Rows::template Lanes<N>{col}, cols, gate, row_of(dy, row, cols), x(row), Kept<N>{&out[0], &out[1]});
  }
};

/// The same where a half is not made of whole tiles: each half on its own.
template <class T, class Rows, class Gate>
struct SwiGluHalf {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs, rare = true;
  const T* dy;
  Rows x;
  int cols;
  Gate gate;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const bool left = col < cols;
    Pack<N> halves[SwiGluHalves<T, Rows, Gate>::outputs];
    SwiGluHalves<T, Rows, Gate>{dy, x, cols, gate}.template make<N>(row, left ? col : col - cols, halves);
#pragma unroll
    for (int i = 0; i < N; ++i) out[0].v[i] = left ? halves[0].v[i] : halves[1].v[i];
  }
};

}  // namespace

void swiglu_backward(Queue queue, const Tensor& dy, const ops::Saved& x, const ops::Sink& dx, ops::Gate gate) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    with_rows<T>(x, [&]<class Rows>(const Rows& rows, bool aligned_rows) {
      const bool aligned = packs_of_eight(dy) && aligned_rows;
      if constexpr (sizeof(T) == 2) {  // of f32, two tiles are more than a thread has registers for
        if (aligned && splits_into_tiles(dx) && has_aligned_packs(dx))
          return with_gate<T>(gate, [&]<class Gate>(Gate function) {
            fill_sink<T>(queue, dx, SwiGluHalves<T, Rows, Gate>{dy.as<T>(), rows, int(dy.shape[1]), function}, true);
          });
      }
      fill_sink<T>(queue, dx, SwiGluHalf<T, Rows, ops::Gate>{dy.as<T>(), rows, int(dy.shape[1]), gate}, aligned);
    });
  });
}

}  // namespace octet::cuda
