#include "octet/ops/gemm/operands.hpp"

namespace octet::ops {

bool one_descale(const Quantized& q) { return q.descales && q.block.whole_tensor(); }

bool descale_per_matrix(const Quantized& q) { return q.descales && q.block.whole_matrices() && !q.block.whole_tensor(); }

namespace {
bool leaves_factor(const Quantized& q) { return one_descale(q) || descale_per_matrix(q); }
}  // namespace

bool fits_bf16(const Quantized& q) {
  return q.codes.dtype == DType::bf16 || (is_fp8(q.codes.dtype) && (q.power_of_two || leaves_factor(q)));
}

DType cpu_compute(const Target& target, const Quantized& a, const Quantized& b) {
  return target.gemm_compute == DType::bf16 && fits_bf16(a) && fits_bf16(b) ? DType::bf16 : DType::f32;
}

GemmReady prepare_operand(Stream& stream, const Quantized& q, DType compute) {
  GemmReady r{.values = q.codes, .decode = q.codes.dtype != compute, .descaled = q.power_of_two || !leaves_factor(q)};
  if (r.decode) r.values = stream.empty(q.codes.shape, compute, Lifetime::scratch, Category::workspace);
  return r;
}

GemmReady prepare_parts(Stream& stream, const Quantized& q, bool along_k) {
  if (q.codes.dtype != DType::f32) return {.values = q.codes};
  const std::int64_t rows = q.codes.shape[0], cols = q.codes.shape[1];
  const Shape shape = !along_k ? Shape{3 * rows, cols} : q.transposed ? Shape{6 * rows, cols} : Shape{rows, 6 * cols};
  return {.values = stream.empty(shape, DType::bf16, Lifetime::scratch, Category::workspace)};
}

void check_gemm_operand(const char* op, const Quantized& q, std::string_view which, bool cpu) {
  const DType t = q.codes.dtype;
  check(q.codes.shape.rank == 2 && (is_fp8(t) || is_activation(t)), "{}: {} must be a matrix of e4m3, e5m2, bf16, f16 or f32, got {} {}",
        op, which, q.codes.shape, t);
  if (!is_fp8(t)) {
    const bool factor = cpu && q.decoded && leaves_factor(q) && q.descales.dtype == DType::f32;
    return check(!q.descales || factor, "{}: {} is {} and cannot have descales", op, which, t);
  }
  check(cpu || !q.transposed, "{}: {} is {} and must be K-contiguous, not a transposed view", op, which, t);
  check(bool(q.descales) && (q.descales.dtype == DType::f32 || q.descales.dtype == DType::e8m0),
        "{}: {} is {} and needs f32 or e8m0 descales", op, which, t);
  const Shape layout = descale_shape(q.block, q.descales.dtype, q.rows(), q.cols());
  check(q.descales.shape == layout, "{}: descales of {} must be {} for blocks of {}, got {}", op, which, layout, q.block, q.descales.shape);
}

}  // namespace octet::ops
