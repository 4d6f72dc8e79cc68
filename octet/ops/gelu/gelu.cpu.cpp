#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "octet/ops/quantize/cpu/coded.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"

namespace octet::cpu::OCTET_ISA {

void gelu_forward(const ops::Saved& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    const std::int64_t cols = x.shape[1];
    with_rows<T>(x, [&](auto lanes, auto row) {
      fill_sink<T>(y, cols * 16, [&](std::int64_t r, T* out) { ops::gelu_row(lanes, cols, row(r), out); });
    });
  });
}

void gelu_backward(const Tensor& dy, const ops::Saved& x, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    const std::int64_t cols = x.shape[1];
    with_rows<T>(x, [&](auto lanes, auto row) {
      fill_sink<T>(dx, cols * 24, [&](std::int64_t r, T* out) { ops::gelu_backward_row(lanes, cols, dy.as<T>() + r * cols, row(r), out); });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
