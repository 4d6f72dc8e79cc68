#include "octet/ops/columns/columns.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void copy_columns(const ops::CopyColumns& a) {
  const std::int64_t size = std::int64_t(size_of(a.from.dtype)), bytes = a.columns * size;
  const std::byte* const from = a.from.as<std::byte>() + a.from_column * size;
  std::byte* const to = a.to.as<std::byte>() + a.to_column * size;
  for_each(a.from.shape[0], 2 * bytes,
           [&](std::int64_t t) { __builtin_memcpy(to + t * a.to.shape[1] * size, from + t * a.from.shape[1] * size, std::size_t(bytes)); });
}

}  // namespace octet::cpu::OCTET_ISA
