#include "octet/ops/quantize/from_codes.kernels.hpp"
#include "octet/ops/quantize/cpu/transpose.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void transpose_bytes(const Tensor& from, const Tensor& to) {
  constexpr std::int64_t side = 128;  // a multiple of transpose_rows
  const std::int64_t R = from.shape[0], C = from.shape[1], across = ceil_div(C, side);
  for_each(ceil_div(R, side) * across, 2 * side * side, [&](std::int64_t i) {
    const std::int64_t r = i / across * side, c = i % across * side;
    const int rows = int(smaller(R - r, side)), cols = int(smaller(C - c, side));
    const std::uint8_t* at = from.u8() + r * C + c;
    std::int64_t stride = C;
    alignas(64) std::uint8_t ragged[side * side];
    if (rows < side || cols < side) {
      for (int k = 0; k < rows; ++k) __builtin_memcpy(ragged + k * side, at + k * C, std::size_t(cols));
      at = ragged, stride = side;
    }
    transpose(at, stride, rows, cols, to.u8() + c * R + r, R);
  });
}

void transpose_descales(std::int64_t rows, std::int64_t cols, const Tensor& from, const Tensor& to) {
  const std::int64_t width = to.shape[1];
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < width; ++i) to.f32()[j * width + i] = i < rows ? from.f32()[i * from.shape[1] + j] : 1.0f;
}

}  // namespace octet::cpu::OCTET_ISA
