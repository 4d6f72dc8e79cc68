#include "octet/ops/add/add.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void add(const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch<float, Bf16>(a.dtype, "add", [&]<class T>() {
    for_each_piece(a.count(), 3 * sizeof(T), [&](std::int64_t begin, std::int64_t n) {
      const T *const x = a.as<T>() + begin, *const y = b.as<T>() + begin;
      T* const z = out.as<T>() + begin;
      Lane{}.each(n, [&](auto at) { Lane{}.store(z, at, Lane{}.load(x, at) + Lane{}.load(y, at)); });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
