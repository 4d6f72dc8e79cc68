#include "octet/ops/weighted_sum/weighted_sum.kernels.hpp"
#include "octet/ops/weighted_sum/weighted_sum.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void weighted_sum(const ops::WeightedSum& a) {
  const ops::WeightedSumFactors f = ops::factors_of(a.a, a.b, a.squares.as<double>(), a.step.as<ops::AdamWStep>());
  dispatch<float, Bf16, Fp16>(a.x.dtype, "weighted_sum: x", [&]<class X>() {
    dispatch<float, Bf16, Fp16>(a.out.dtype, "weighted_sum: out", [&]<class Out>() {
      for_each_piece(a.x.count(), 2 * sizeof(X) + sizeof(Out), [&](std::int64_t begin, std::int64_t n) {
        ops::weighted_sum_row(Lane{}, n, f, a.x.as<X>() + begin, a.y ? a.y.as<X>() + begin : nullptr, a.out.as<Out>() + begin);
      });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
