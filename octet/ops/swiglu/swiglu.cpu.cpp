#include "octet/ops/quantize/cpu/coded.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"

namespace octet::cpu::OCTET_ISA {

void swiglu_forward(const ops::Saved& x, const ops::Sink& y, ops::Gate gate) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    const std::int64_t cols = y.shape[1];
    with_saving_rows<T>(x, [&](auto lanes, auto row) {
      fill_sink<T>(y, cols * 24, [&](std::int64_t r, T* out) { ops::swiglu_row(lanes, cols, gate, row(r), out); });
    });
  });
}

void swiglu_backward(const Tensor& dy, const ops::Saved& x, const ops::Sink& dx, ops::Gate gate) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    const std::int64_t cols = dy.shape[1];
    with_rows<T>(x, [&](auto lanes, auto row) {
      fill_sink<T>(dx, cols * 32,
                   [&](std::int64_t r, T* out) { ops::swiglu_backward_row(lanes, cols, gate, dy.as<T>() + r * cols, row(r), out); });
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
