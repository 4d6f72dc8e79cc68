#include "octet/ops/gather_codes/gather_codes.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Rows in the order of a table's descales: 1 x n of f32 have blocks of a row first, others rows.
template <class T>
void gather_descales(const Quantized& from, const ops::ExpertMap& map, const Quantized& to, T of_zeros) {
  const auto* const source = map.source.as<std::int32_t>();
  const std::int64_t rows = map.rows(), choices = map.choices();
  const bool row_first = to.descales.shape.rank == 1 || to.descales.dtype == DType::e8m0;
  const std::int64_t stored = to.descales.shape[row_first ? 0 : 1];  // with padding
  const std::int64_t blocks = stored > 0 ? to.descales.count() / stored : 0;
  const std::int64_t width = from.descales.shape[from.descales.shape.rank - 1];
  for_each(stored, 2 * blocks, [&](std::int64_t r) {
    const std::int64_t t = r < rows && source[r] >= 0 ? source[r] / choices : -1;
    for (std::int64_t b = 0; b < blocks; ++b) {
      T& place = to.descales.as<T>()[row_first ? r * blocks + b : b * stored + r];
      place = t < 0 ? of_zeros : from.descales.as<T>()[row_first ? t * blocks + b : b * width + t];
    }
  });
}

}  // namespace

void gather_codes(const Quantized& from, const ops::ExpertMap& map, const Quantized& to) {
  const auto* const source = map.source.as<std::int32_t>();
  const std::int64_t choices = map.choices(), bytes = from.codes.shape[1] * std::int64_t(size_of(from.codes.dtype));
  for_each(map.rows(), 2 * bytes, [&](std::int64_t r) {
    std::uint8_t* const place = static_cast<std::uint8_t*>(to.codes.data) + r * bytes;
    if (source[r] < 0) __builtin_memset(place, 0, std::size_t(bytes));
    else __builtin_memcpy(place, static_cast<const std::uint8_t*>(from.codes.data) + source[r] / choices * bytes, std::size_t(bytes));
  });
  if (!to.descales || to.block.whole_tensor()) return;
  if (to.descales.dtype == DType::e8m0) gather_descales<std::uint8_t>(from, map, to, 0);
  else gather_descales<float>(from, map, to, 1);
}

}  // namespace octet::cpu::OCTET_ISA
