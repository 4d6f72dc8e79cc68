#include <cstring>

#include "octet/ops/clear_padding/clear_padding.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void clear_padding(const ops::RowGroups& groups, const Tensor& x) {
  const auto *const begin = groups.begin.as<std::int32_t>(), *const count = groups.count.as<std::int32_t>();
  const std::int64_t row = x.shape[1] * std::int64_t(size_of(x.dtype));
  for_each(groups.size(), groups.tile * row, [&](std::int64_t e) {
    const std::int64_t first = begin[e] + count[e];
    std::memset(x.u8() + first * row, 0, std::size_t((begin[e + 1] - first) * row));
  });
}

}  // namespace octet::cpu::OCTET_ISA
