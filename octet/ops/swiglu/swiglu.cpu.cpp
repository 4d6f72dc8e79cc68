#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

void swiglu_forward(const Tensor& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    const std::int64_t cols = y.shape[1];
    fill_sink<T>(y, cols * 24, [&](std::int64_t r, T* out) { ops::swiglu_row(Lane{}, cols, x.as<T>() + r * 2 * cols, out); });
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& x, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    const std::int64_t cols = dy.shape[1];
    fill_sink<T>(dx, cols * 32, [&](std::int64_t r, T* out) {
      ops::swiglu_backward_row(Lane{}, cols, dy.as<T>() + r * cols, x.as<T>() + r * 2 * cols, out);
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
