#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

void gelu_forward(const Tensor& x, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    const std::int64_t cols = x.shape[1];
    fill_sink<T>(y, cols * 16, [&](std::int64_t r, T* out) { ops::gelu_row(Lane{}, cols, x.as<T>() + r * cols, out); });
  });
}

void gelu_backward(const Tensor& dy, const Tensor& x, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gelu", [&]<class T>() {
    const std::int64_t cols = x.shape[1];
    fill_sink<T>(dx, cols * 24,
                 [&](std::int64_t r, T* out) { ops::gelu_backward_row(Lane{}, cols, dy.as<T>() + r * cols, x.as<T>() + r * cols, out); });
  });
}

}  // namespace octet::cpu::OCTET_ISA
