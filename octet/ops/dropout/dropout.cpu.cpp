#include "octet/ops/dropout/dropout.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

// Neighbours in memory follow each other.
void dropout(const ops::Dropout& d) {
  const ops::DropoutMask mask(d);
  const std::int64_t* const numbers = d.numbers.as<std::int64_t>();
  const std::int64_t counters = mask.counters();
  dispatch<float, Bf16, Fp16>(d.x.dtype, "dropout", [&]<class T>() {
    const T* const x = d.x.as<T>();
    T* const y = d.y.as<T>();
    if (d.tokens_last)
      for_each(counters, mask.tokens * 64, [&](std::int64_t i) {
        for (std::int64_t t = 0; t < mask.tokens; ++t) ops::drop(mask, numbers, x, y, t, i);
      });
    else
      for_each(mask.tokens, counters * 64, [&](std::int64_t t) {
        for (std::int64_t i = 0; i < counters; ++i) ops::drop(mask, numbers, x, y, t, i);
      });
  });
}

}  // namespace octet::cpu::OCTET_ISA
