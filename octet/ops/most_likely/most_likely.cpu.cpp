#include <algorithm>

#include "octet/numerics/order.hpp"
#include "octet/ops/most_likely/most_likely.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <class T>
std::int32_t ordered_value(T x) {
  if constexpr (std::is_same_v<T, float>) return ordered(x);
  else return ordered(to_float(x));
}

// The first block that has the largest value is searched again.
template <class T>
std::int32_t first_of_largest(const T* x, std::int64_t n) {
  constexpr std::int64_t size = 256;
  OrderedRange all;
  std::int64_t found = 0;
  for (std::int64_t begin = 0; begin < n; begin += size) {
    OrderedRange block;
    for (std::int64_t i = begin; i < std::min(begin + size, n); ++i) block.add(ordered_value(x[i]));
    if (block.most > all.most) found = begin;
    all.add(block);
  }
  if (!all.is_finite()) return -1;
  while (ordered_value(x[found]) != all.most) ++found;
  return std::int32_t(found);
}

}  // namespace

void most_likely(const ops::MostLikely& a) {
  const std::int64_t columns = a.logits.shape[1];
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "most_likely", [&]<class T>() {
    for_each(a.logits.shape[0], a.vocabulary * std::int64_t(sizeof(T)),
             [&](std::int64_t t) { a.ids.as<std::int32_t>()[t] = first_of_largest(a.logits.as<T>() + t * columns, a.vocabulary); });
  });
}

}  // namespace octet::cpu::OCTET_ISA
