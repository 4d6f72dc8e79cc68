#include <algorithm>

#include "octet/ops/clamp_columns/clamp_columns.kernels.hpp"
#include "octet/ops/clamp_columns/clamp_columns.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// change(eight values, their number, row, byte of it) between loading and storing each eight.
template <class F>
void change_eights(const ops::CopyColumns& c, const F& change) {
  dispatch<float, Bf16, Fp16>(c.from.dtype, "clamp_columns", [&]<class T>() {
    const ops::ClampPlaces<T> p(c);
    for_each(c.from.shape[0], p.columns * 16, [&](std::int64_t t) {
      for (std::int64_t b = 0; b < p.bytes; ++b) {
        const T* const from = p.from + t * p.from_row + 8 * b;
        T* const to = p.to + t * p.to_row + 8 * b;
        const int count = int(std::min<std::int64_t>(8, p.columns - 8 * b));
        float x[8];
        for (int i = 0; i < count; ++i) x[i] = ops::float_of_value(from[i]);
        change(x, count, t * p.bytes + b);
        for (int i = 0; i < count; ++i) to[i] = from_float<T>(x[i]);
      }
    });
  });
}

}  // namespace

void clamp_columns(const ops::ClampColumns& a) {
  std::uint8_t* const bits = a.outside ? a.outside.u8() : nullptr;
  change_eights(a.columns, [&](float* x, int count, std::int64_t byte) {
    const unsigned outside = ops::clamp_eight(x, count, a.limit);
    if (bits != nullptr) bits[byte] = std::uint8_t(outside);
  });
}

void clamp_columns_backward(const ops::ClampColumnsBackward& a) {
  const std::uint8_t* const bits = a.outside.u8();
  change_eights(a.columns, [&](float* x, int count, std::int64_t byte) { ops::clear_eight(x, count, bits[byte]); });
}

}  // namespace octet::cpu::OCTET_ISA
