#include "octet/ops/running_mean/running_mean.kernels.hpp"
#include "octet/ops/running_mean/running_mean.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void running_mean(const Tensor& x, const Tensor& descale, float share, const Tensor& mean) {
  const float factor = descale ? *descale.f32() : 1.0f;
  dispatch<float, Bf16, Fp16, E4M3>(x.dtype, "running_mean", [&]<class T>() {
    for_each_piece(x.count(), sizeof(T) + 2 * sizeof(float), [&](std::int64_t begin, std::int64_t n) {
      ops::running_mean_row(Lane{}, n, x.as<T>() + begin, factor, share, mean.as<float>() + begin);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
