#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
#include "octet/tensor/cuda/row_gradients.cuh"

namespace octet::cuda {
namespace {

struct LayerNormGradient {
  static constexpr int sums = 2;
  const float *w, *mean, *inv_std;

  template <class Lanes, class X, class Sums>
  __device__ __forceinline__ void row(const Lanes& lanes, std::int64_t cols, std::int64_t r, const X* dy, const X* x, bool accumulate,
                                      X* dx, Sums dw_db) const {
    const ops::LayerNormRow<float> statistics{mean[r], inv_std[r]};
    ops::layernorm_backward_row(lanes, cols, dy, x, w, statistics, accumulate, dx, dw_db + 0, dw_db + 1);
  }
};

}  // namespace

void layernorm_backward(Queue queue, const ops::LayerNormBackward& a, const Tensor& sums_of_workers) {
  const std::int64_t cols = a.x.shape[1];
  if (cols == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.dtype, "layernorm", [&]<class T>() {
    const RowGradients<T> rows{a.x.shape[0], cols, a.dy.as<T>(), a.x.as<T>(), a.dx.as<T>(), sums_of_workers.f32(), a.accumulate};
    const int used =
        run_row_gradients(queue, rows, LayerNormGradient{a.w.f32(), a.mean.f32(), a.inv_std.f32()}, int(sums_of_workers.shape[0]));
    add_worker_sums(queue, used, cols, 2 * cols, sums_of_workers.f32(), a.dw.f32());
    add_worker_sums(queue, used, cols, 2 * cols, sums_of_workers.f32() + cols, a.db.f32());
  });
}

}  // namespace octet::cuda
