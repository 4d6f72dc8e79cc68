#include "octet/ops/add/add.kernels.hpp"
#include "octet/ops/add/add.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void add(const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch<float, Bf16, Fp16>(a.dtype, "add", [&]<class T>() {
    for_each_piece(a.count(), 3 * sizeof(T), [&](std::int64_t begin, std::int64_t n) {
      ops::add_row(Lane{}, n, a.as<T>() + begin, b.as<T>() + begin, out.as<T>() + begin);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
