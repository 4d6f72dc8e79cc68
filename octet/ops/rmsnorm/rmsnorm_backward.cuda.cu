#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cuda/row_gradients.cuh"

namespace octet::cuda {
namespace {

struct RmsNormGradient {
  static constexpr int sums = 1;
  const float *w, *inv_rms;
  float offset;

  template <class Lanes, class X, class Sums>
  __device__ __forceinline__ void row(const Lanes& lanes, std::int64_t cols, std::int64_t r, const X* dy, const X* x, bool accumulate,
                                      X* dx, Sums dw) const {
    ops::rmsnorm_backward_row(lanes, cols, dy, x, w, offset, inv_rms[r], accumulate, dx, dw + 0);
  }
};

// Of columns of wider rows, whose means are known.
struct RmsNormPartGradient {
  static constexpr int sums = 1;
  const float *w, *inv_rms, *mean;
  float offset;

  template <class Lanes, class X, class Sums>
  __device__ __forceinline__ void row(const Lanes& lanes, std::int64_t cols, std::int64_t r, const X* dy, const X* x, bool accumulate,
                                      X* dx, Sums dw) const {
    ops::rmsnorm_gradient_row(lanes, cols, dy, x, w, offset, inv_rms[r], mean[r], accumulate, dx, dw + 0);
  }
};

}  // namespace

void rmsnorm_backward(Queue queue, const ops::RmsNormBackward& a, const Tensor& dw_of_workers) {
  const std::int64_t cols = a.x.shape[1];
  if (cols == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const RowGradients<T> rows{a.x.shape[0], cols, a.dy.as<T>(), a.x.as<T>(), a.dx.as<T>(), dw_of_workers.f32(), a.accumulate};
    const int workers = int(dw_of_workers.shape[0]);
    const int used = a.mean
                         ? run_row_gradients(queue, rows, RmsNormPartGradient{a.w.f32(), a.inv_rms.f32(), a.mean.f32(), a.offset}, workers)
                         : run_row_gradients(queue, rows, RmsNormGradient{a.w.f32(), a.inv_rms.f32(), a.offset}, workers);
    add_worker_sums(queue, used, cols, cols, dw_of_workers.f32(), a.dw.f32());
  });
}

}  // namespace octet::cuda
