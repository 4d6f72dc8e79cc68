#include "octet/ops/gather_rows/gather_rows.kernels.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"

namespace octet::cpu::OCTET_ISA {

void gather_rows(const Tensor& x, const ops::ExpertMap& map, const ops::Sink& y) {
  const std::int64_t cols = x.shape[1], choices = map.choices();
  const auto* const source = map.source.as<std::int32_t>();
  dispatch<float, Bf16, Fp16>(x.dtype, "gather_rows", [&]<class T>() {
    const std::size_t bytes = std::size_t(cols) * sizeof(T);
    fill_sink<T>(y, cols * 8, [&](std::int64_t r, T* out) {
      if (source[r] < 0) __builtin_memset(out, 0, bytes);
      else __builtin_memcpy(out, x.as<T>() + source[r] / choices * cols, bytes);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
