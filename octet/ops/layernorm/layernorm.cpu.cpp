#include "octet/ops/add/add.math.hpp"
#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

void layernorm_forward(const ops::LayerNormForward& a) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "layernorm", [&]<class T>() {
    const std::int64_t cols = a.x.shape[1];
    fill_sink<T>(a.y, cols * 8, [&](std::int64_t r, T* y) {
      T* const x = a.x.as<T>() + r * cols;
      if (a.added) ops::add_row(Lane{}, cols, x, a.added.as<T>() + r * cols, x);
      float &mean = a.mean.f32()[r], &inv_std = a.inv_std.f32()[r];
      const auto row = a.known ? ops::LayerNormRow<float>{mean, inv_std} : ops::layernorm_statistics(Lane{}, cols, x, a.eps);
      mean = row.mean, inv_std = row.inv_std;
      ops::layernorm_scale_row(Lane{}, cols, x, a.w.f32(), a.b.f32(), row, y);
    });
  });
}

void layernorm_add(const ops::LayerNormAdd& a) {
  dispatch<float, Bf16, Fp16>(a.sum.dtype, "layernorm", [&]<class T>() {
    const std::int64_t cols = a.sum.shape[1];
    for_each(a.sum.shape[0], cols * 3 * std::int64_t(sizeof(T)), [&](std::int64_t r) {
      T* const sum = a.sum.as<T>() + r * cols;
      ops::add_row(Lane{}, cols, a.a.as<T>() + r * cols, a.b.as<T>() + r * cols, sum);
      const auto row = ops::layernorm_statistics(Lane{}, cols, sum, a.eps);
      a.mean.f32()[r] = row.mean, a.inv_std.f32()[r] = row.inv_std;
    });
  });
}

void layernorm_backward(const ops::LayerNormBackward& a, const Tensor& sums_of_workers) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "layernorm", [&]<class T>() {
    const std::int64_t rows = a.x.shape[0], cols = a.x.shape[1];
    __builtin_memset(sums_of_workers.data, 0, sums_of_workers.bytes());
    for_each(rows, cols * 8, [&](std::int64_t r) {
      const std::int64_t at = r * cols;
      float* const dw = sums_of_workers.f32() + this_thread() * 2 * cols;
      const ops::LayerNormRow<float> row{a.mean.f32()[r], a.inv_std.f32()[r]};
      ops::layernorm_backward_row(Lane{}, cols, a.dy.as<T>() + at, a.x.as<T>() + at, a.w.f32(), row, a.accumulate, a.dx.as<T>() + at, dw,
                                  dw + cols);
    });
    for (int t = 0; t < threads(); ++t) {
      const float* const dw = sums_of_workers.f32() + t * 2 * cols;
      Lane{}.each(cols, [&](auto at) {
        Lane{}.store(a.dw.f32(), at, Lane{}.load(a.dw.f32(), at) + Lane{}.load(dw, at));
        Lane{}.store(a.db.f32(), at, Lane{}.load(a.db.f32(), at) + Lane{}.load(dw + cols, at));
      });
    }
  });
}

}  // namespace octet::cpu::OCTET_ISA
