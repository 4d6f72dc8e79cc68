#include "octet/ops/gemm/gemm.hpp"

#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/multiply.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {
namespace {

bool one_descale(const Quantized& q) { return q.descales && q.block.whole_tensor(); }

// Exact in BF16: its own values, and FP8 codes unless each block's descale has a mantissa that must be multiplied in.
bool fits_bf16(const Quantized& q) { return q.codes.dtype == DType::bf16 || (is_fp8(q.codes.dtype) && (q.power_of_two || one_descale(q))); }

// An operand as oneDNN gets it.
struct Ready {
  Tensor values;
  bool decode = false;    // values are scratch, to be filled
  bool descaled = false;  // its descales are in the values, not in alpha
};

Ready prepare(Stream& stream, const Quantized& q, DType compute) {
  Ready r{.values = q.codes, .decode = q.codes.dtype != compute, .descaled = q.power_of_two || !one_descale(q)};
  if (r.decode) r.values = stream.empty(q.codes.shape, compute, Lifetime::scratch, Category::workspace);
  return r;
}

void check_operand(const Quantized& q, std::string_view which) {
  const DType t = q.codes.dtype;
  check(q.codes.shape.rank == 2 && (is_fp8(t) || t == DType::f32 || t == DType::bf16), "gemm: {} must be a matrix of e4m3, e5m2, bf16 or f32, got {} {}",
        which, q.codes.shape, t);
  if (!is_fp8(t)) return check(!q.descales, "gemm: {} is {} and cannot have descales", which, t);
  check(!q.transposed, "gemm: {} is {} and must be K-contiguous, not a transposed view", which, t);
  check(bool(q.descales) && (q.descales.dtype == DType::f32 || q.descales.dtype == DType::e8m0), "gemm: {} is {} and needs f32 or e8m0 descales", which, t);
  const Shape layout = descale_shape(q.block, q.descales.dtype, q.rows(), q.cols());
  check(q.descales.shape == layout, "gemm: descales of {} must be {} for blocks of {}, got {}", which, layout, q.block, q.descales.shape);
}

void check_gemm(const Gemm& g) {
  check_operand(g.a, "a"), check_operand(g.b, "b");
  const std::int64_t M = g.a.rows(), N = g.b.rows(), K = g.a.cols();
  check(g.b.cols() == K, "gemm: a and b must have one K, got [{}, {}] and [{}, {}]", M, K, N, g.b.cols());
  check(g.d.shape == Shape{M, N} && (g.d.dtype == DType::f32 || g.d.dtype == DType::bf16), "gemm: d must be [{}, {}] of f32 or bf16, got {} {}", M, N,
        g.d.shape, g.d.dtype);
  check(!g.accumulate || g.d.dtype == DType::f32, "gemm: only an f32 result can be accumulated, got {}", g.d.dtype);
  check(!g.bias || (g.bias.shape == Shape{N} && g.bias.dtype == DType::f32), "gemm: bias must be f32 [{}], got {} {}", N, g.bias.dtype, g.bias.shape);
}

// K = 0: every sum is empty.
void empty_sums(const Gemm& g) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1];
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      const float sum = g.bias ? g.bias.f32()[n] : 0.0f;
      if (g.d.dtype == DType::bf16) g.d.bf16()[m * N + n] = to_bf16(sum);
      else g.d.f32()[m * N + n] = g.accumulate ? g.d.f32()[m * N + n] + sum : sum;
    }
}

void run(const Gemm& g, DType compute, const Ready& a, const Ready& b, const Tensor& sums) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1], K = g.a.cols();
  if (M == 0 || N == 0) return;
  if (K == 0) return empty_sums(g);
  if (a.decode) OCTET_RUN(decode_operand, g.a, a.descaled, a.values);
  if (b.decode) OCTET_RUN(decode_operand, g.b, b.descaled, b.values);
  const bool scaled = !a.descaled || !b.descaled;
  const float alpha = (a.descaled ? 1.0f : *g.a.descales.f32()) * (b.descaled ? 1.0f : *g.b.descales.f32());
  const float* const bias = g.bias ? g.bias.f32() : nullptr;
  const bool later = bool(sums);  // alpha and bias belong to the pass that rounds or adds
  multiply({.M = M, .N = N, .K = K, .type = compute, .result = later ? DType::f32 : g.d.dtype, .a_transposed = g.a.transposed,
            .b_transposed = g.b.transposed, .scaled = scaled && !later, .biased = bias != nullptr && !later, .accumulate = g.accumulate && !later},
           a.values.data, b.values.data, later ? sums.data : g.d.data, alpha, bias);
  if (later && g.accumulate) OCTET_RUN(add_sums, sums, alpha, bias, g.d);
  else if (later) OCTET_RUN(round_sums, sums, alpha, bias, g.d);
}

}  // namespace

void gemm(Stream& stream, const Gemm& g) {
  check_gemm(g);
  const double flops = 2.0 * double(g.d.shape.count()) * double(g.a.cols());
  stream.count({.ops = 1, .flops = flops, .gemm_flops = flops});
  const DType compute = stream.target().gemm_compute == DType::bf16 && fits_bf16(g.a) && fits_bf16(g.b) ? DType::bf16 : DType::f32;
  const Scope scope(stream);
  const Ready a = prepare(stream, g.a, compute), b = prepare(stream, g.b, compute);
  const bool rounded = g.d.dtype == DType::bf16 && compute == DType::f32;
  const bool scaled_and_added = g.accumulate && (!a.descaled || !b.descaled);  // in one call, oneDNN leaves its fast kernels
  Tensor sums;
  if (rounded || scaled_and_added) sums = stream.empty(g.d.shape, DType::f32, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::cpu) run(g, compute, a, b, sums);
}

void add_column_sums(Stream& stream, const Tensor& x, const Tensor& db) {
  check(x.shape.rank == 2 && db.shape == Shape{x.shape[1]} && db.dtype == DType::f32, "add_column_sums: db must be f32 [{}], got {} {}", x.shape[1],
        db.dtype, db.shape);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  OCTET_LAUNCH(stream, add_column_sums, x, db);
}

}  // namespace octet::ops
