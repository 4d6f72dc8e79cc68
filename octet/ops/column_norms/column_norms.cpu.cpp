#include "octet/ops/column_norms/column_norms.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void column_norms(const ops::ColumnNorms& a) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "column_norms", [&]<class T>() {
    const std::int64_t columns = a.x.shape[1];
    for_each(a.x.shape[0], 2 * columns * std::int64_t(sizeof(T)), [&](std::int64_t t) {
      for (const ops::NormedColumns& r : a.ranges) {
        const std::int64_t D = r.w.shape[0];
        for (std::int64_t g = 0; g < r.count; ++g) {
          T* const v = a.x.as<T>() + t * columns + r.first + g * D;
          ops::rmsnorm_scale_row(Lane{}, D, v, r.w.f32(), a.offset, ops::rmsnorm_statistic(Lane{}, D, v, a.eps), v);
        }
      }
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
