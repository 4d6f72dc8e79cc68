#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void adamw(const ops::AdamW& a) {
  const ops::AdamWStep step = *a.step.as<ops::AdamWStep>();
  if (step.skip != 0) return;
  const ops::AdamWConstants constants(a);
  ops::with_adamw_types(a, [&]<class P, class G, class M>() {
    for_each_piece(a.value.count(), 28, [&](std::int64_t begin, std::int64_t n) {
      const G* const grad = a.grad.as<G>() + begin;
      P* const value = a.value.as<P>() + begin;
      M *const m = a.moments.m.as<M>() + begin, *const v = a.moments.v.as<M>() + begin;
      const ops::AdamWDraws draws{a.key, step.updates, begin};
      Lane{}.each(n, [&](auto at) { ops::adamw_update(Lane{}, at, constants, step, grad, value, m, v, draws); });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
