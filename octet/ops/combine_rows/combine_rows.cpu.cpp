#include "octet/ops/combine_rows/combine_rows.kernels.hpp"
#include "octet/ops/combine_rows/combine_rows.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void combine_rows(const Tensor& x, const ops::ExpertMap& map, const Tensor& y, bool add) {
  const std::int64_t cols = y.shape[1], choices = map.choices();
  dispatch<float, Bf16, Fp16>(y.dtype, "combine_rows", [&]<class T>() {
    for_each(y.shape[0], cols * 4 * (choices + 1), [&](std::int64_t t) {
      ops::combine_row(Lane{}, cols, choices, x.as<T>(), map.row.as<std::int32_t>() + t * choices, y.as<T>() + t * cols, add);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
