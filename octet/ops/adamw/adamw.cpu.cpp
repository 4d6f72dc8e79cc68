#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void adamw(const ops::AdamW& a) {
  const ops::AdamWStep step = *a.step.as<ops::AdamWStep>();
  if (step.skip != 0) return;
  const ops::AdamWConstants constants(a);
  dispatch<float>(a.moments.m.dtype, "adamw: m", [&]<class M>() {
    dispatch<float>(a.moments.v.dtype, "adamw: v", [&]<class V>() {
      for_each_piece(a.value.count(), 28, [&](std::int64_t begin, std::int64_t n) {
        const float* const grad = a.grad.f32() + begin;
        float* const value = a.value.f32() + begin;
        M* const m = a.moments.m.as<M>() + begin;
        V* const v = a.moments.v.as<V>() + begin;
        Lane{}.each(n, [&](auto at) { ops::adamw_update(Lane{}, at, constants, step, grad, value, m, v); });
      });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
