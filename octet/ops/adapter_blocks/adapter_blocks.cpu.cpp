#include "octet/ops/adapter_blocks/adapter_blocks.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void spread_blocks(const Tensor& from, const ops::RowBlocks& blocks, float factor, const Tensor& to) {
  const std::int64_t width = from.shape[1], columns = to.shape[1];
  dispatch<float, Bf16, Fp16>(to.dtype, "spread_blocks", [&]<class T>() {
    for_each(to.shape[0], 2 * columns * std::int64_t(sizeof(T)), [&](std::int64_t row) {
      for (std::int64_t c = 0; c < columns; ++c)
        to.as<T>()[row * columns + c] = ops::spread_value(blocks, from.as<T>(), width, factor, row, c);
    });
  });
}

void collect_blocks(const Tensor& from, const ops::RowBlocks& blocks, float factor, bool accumulate, const Tensor& to) {
  const std::int64_t width = to.shape[1];
  dispatch<float, Bf16>(to.dtype, "collect_blocks", [&]<class T>() {
    for_each(from.shape[0], width * 8, [&](std::int64_t row) {
      for (std::int64_t c = 0; c < width; ++c) ops::collect_value(blocks, from.f32(), width, factor, accumulate, to.as<T>(), row, c);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
