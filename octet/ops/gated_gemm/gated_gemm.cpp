#include "octet/ops/gated_gemm/gated_gemm.hpp"

#include "octet/ops/gated_gemm/gated_gemm.kernels.hpp"
#include "octet/ops/gemm/few_rows.hpp"

namespace octet::ops {
namespace {

bool fills_by_columns(const Sink& y) {
  const QuantizeSpec& s = y.spec;
  if (!s.quantizes()) return true;
  const bool rows_alone = y.codes.rows && !y.codes.cols && !s.amax && s.health == nullptr;
  return rows_alone && (s.scale_known() || (s.rows.rows == 1 && s.rows.cols > 0));
}

// A row of `a` in pieces of 16 bytes.
bool is_one_launch(const Stream& stream, const Gemm& g, const Sink& y) {
  if (stream.target().device != Device::cuda || g.d.shape[0] != 1 || g.accumulate || !reads_b_once(g)) return false;
  const DType type = g.b.codes.dtype;
  const auto addresses = reinterpret_cast<std::uintptr_t>(g.a.codes.data) | reinterpret_cast<std::uintptr_t>(g.b.codes.data) |
                         reinterpret_cast<std::uintptr_t>(y.plain.data) | reinterpret_cast<std::uintptr_t>(y.codes.rows.codes.data);
  return type != DType::f16 && g.d.dtype == DType::bf16 && g.a.cols() > 0 && g.a.cols() % 16 == 0 && addresses % 16 == 0 &&
         y.shape[1] % gated_columns == 0 && fills_by_columns(y);
}

}  // namespace

void gated_gemm(Stream& stream, const GatedGemm& a, Sink& y) {
  const Gemm& g = a.product;
  check(y.shape == Shape{g.d.shape[0], g.d.shape[1] / 2} && y.dtype == g.d.dtype && g.d.shape[1] % 2 == 0,
        "gated_gemm: y must be half of d {} {}, got {} {}", g.d.dtype, g.d.shape, y.dtype, y.shape);
  if (!is_one_launch(stream, g, y)) {
    gemm(stream, g);
    return swiglu_forward(stream, g.d, y, nullptr, a.gate);
  }
  check_gemm(g, false);
  const double flops = 2.0 * double(g.d.shape.count()) * double(g.a.cols());
  stream.count({.ops = 1, .flops = flops, .gemm_flops = flops, .fp8_flops = g.a.eight_bit() ? flops : 0});
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(gated_row, stream.queue(), a, y);
}

}  // namespace octet::ops
