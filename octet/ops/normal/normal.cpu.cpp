#include "octet/ops/normal/normal.kernels.hpp"
#include "octet/ops/normal/normal.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// As many pairs as a register has lanes: 2 * width values from number `first` on, which is a multiple of 4, or fewer.
template <class T>
void fill_pairs(std::uint64_t key, float deviation, T* x, std::int64_t first, std::int64_t count) {
  Vec u, v;
  for (int i = 0; i < width; i += 2) {
    const RandomWords r = philox(key, std::uint64_t(first / 4 + i / 2));
    u[i] = uniform(r.w[0]), v[i] = uniform(r.w[1]), u[i + 1] = uniform(r.w[2]), v[i + 1] = uniform(r.w[3]);
  }
  const auto z = ops::normal_pair(u, v);
  const Vec one = z.first * deviation, other = z.second * deviation;
  T values[2 * width];
  for (int i = 0; i < width; ++i) {
    if constexpr (sizeof(T) == 2) values[2 * i] = to_bf16(one[i]), values[2 * i + 1] = to_bf16(other[i]);
    else values[2 * i] = one[i], values[2 * i + 1] = other[i];
  }
  __builtin_memcpy(x, values, std::size_t(count < 2 * width ? count : 2 * width) * sizeof(T));
}

}  // namespace

void fill_normal(std::uint64_t key, float deviation, const Tensor& x, std::int64_t first) {
  dispatch<float, Bf16>(x.dtype, "fill_normal", [&]<class T>() {
    for_each_piece(x.count(), 64, [&](std::int64_t begin, std::int64_t n) {
      for (std::int64_t i = 0; i < n; i += 2 * width) fill_pairs(key, deviation, x.as<T>() + begin + i, first + begin + i, n - i);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
