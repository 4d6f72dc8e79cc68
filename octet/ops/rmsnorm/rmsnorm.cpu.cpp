#include "octet/ops/add/add.math.hpp"
#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

void rmsnorm_forward(const ops::RmsNormForward& a) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const std::int64_t cols = a.x.shape[1];
    fill_sink<T>(a.y, cols * 8, [&](std::int64_t r, T* y) {
      T* const x = a.x.as<T>() + r * cols;
      if (a.added) ops::add_row(Lane{}, cols, x, a.added.as<T>() + r * cols, x);
      float& inv = a.inv_rms.f32()[r];
      if (!a.known) inv = ops::rmsnorm_statistic(Lane{}, cols, x, a.eps);
      ops::rmsnorm_scale_row(Lane{}, cols, x, a.w.f32(), a.offset, inv, y);
    });
  });
}

void rmsnorm_add(const ops::RmsNormAdd& a) {
  dispatch<float, Bf16, Fp16>(a.sum.dtype, "rmsnorm", [&]<class T>() {
    const std::int64_t cols = a.sum.shape[1];
    for_each(a.sum.shape[0], cols * 3 * std::int64_t(sizeof(T)), [&](std::int64_t r) {
      T* const sum = a.sum.as<T>() + r * cols;
      ops::add_row(Lane{}, cols, a.a.as<T>() + r * cols, a.b.as<T>() + r * cols, sum);
      a.inv_rms.f32()[r] = ops::rmsnorm_statistic(Lane{}, cols, sum, a.eps);
    });
  });
}

void rmsnorm_backward(const ops::RmsNormBackward& a, const Tensor& dw_of_workers) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const std::int64_t rows = a.x.shape[0], cols = a.x.shape[1];
    __builtin_memset(dw_of_workers.data, 0, dw_of_workers.bytes());
    for_each(rows, cols * 8, [&](std::int64_t r) {
      const T *const dy = a.dy.as<T>() + r * cols, *const x = a.x.as<T>() + r * cols;
      const float* const w = a.w.f32();
      const float inv = a.inv_rms.f32()[r];
      T* const dx = a.dx.as<T>() + r * cols;
      float* const dw = dw_of_workers.f32() + this_thread() * cols;
      if (a.mean) ops::rmsnorm_gradient_row(Lane{}, cols, dy, x, w, a.offset, inv, a.mean.f32()[r], a.accumulate, dx, dw);
      else ops::rmsnorm_backward_row(Lane{}, cols, dy, x, w, a.offset, inv, a.accumulate, dx, dw);
    });
    for (int t = 0; t < threads(); ++t)
      Lane{}.each(cols, [&](auto at) {
        Lane{}.store(a.dw.f32(), at, Lane{}.load(a.dw.f32(), at) + Lane{}.load(dw_of_workers.f32() + t * cols, at));
      });
  });
}

}  // namespace octet::cpu::OCTET_ISA
