#include "octet/ops/gemm/gemm.hpp"

#include <algorithm>

#include "octet/ops/gemm/few_rows.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/multiply.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {
void check_gemm(const Gemm& g, bool cpu) {
  check_gemm_operand("gemm", g.a, "a", cpu), check_gemm_operand("gemm", g.b, "b", cpu);
  check(!descale_per_matrix(g.a) && !descale_per_matrix(g.b), "gemm: stacks with a scale per matrix are for grouped_gemm()");
  const std::int64_t M = g.a.rows(), N = g.b.rows(), K = g.a.cols();
  check(g.b.cols() == K, "gemm: a and b must have one K, got [{}, {}] and [{}, {}]", M, K, N, g.b.cols());
  check(g.d.shape == Shape{M, N} && is_activation(g.d.dtype), "gemm: d must be [{}, {}] of f32, bf16 or f16, got {} {}", M, N, g.d.shape,
        g.d.dtype);
  check(!g.bias || (g.bias.shape == Shape{N} && g.bias.dtype == DType::f32), "gemm: bias must be f32 [{}], got {} {}", N, g.bias.dtype,
        g.bias.shape);
}

bool reads_b_once(const Gemm& g) {
  const DType type = g.b.codes.dtype;
  const bool scaled = g.a.descales.dtype == g.b.descales.dtype && gemm_scale(g.a) && gemm_scale(g.b);
  const bool known = type == DType::bf16 || type == DType::f16 || (type == DType::e4m3 && scaled);
  return g.d.shape[0] <= few_rows && !g.a.transposed && !g.b.transposed && g.a.codes.dtype == type && known;
}

namespace {

bool eight_bit(const Gemm& g) { return g.a.eight_bit() || g.b.eight_bit(); }

// K = 0: every sum is empty.
void empty_sums(const Gemm& g) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1];
  dispatch<float, Bf16, Fp16>(g.d.dtype, "gemm", [&]<class T>() {
    for (std::int64_t i = 0; i < M * N; ++i) {
      const float sum = g.bias ? g.bias.f32()[i % N] : 0.0f;
      g.d.as<T>()[i] = from_float<T>(g.accumulate ? value_at(g.d, i) + sum : sum);
    }
  });
}

void run(const Gemm& g, DType compute, const GemmReady& a, const GemmReady& b, const Tensor& sums) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1], K = g.a.cols();
  if (M == 0 || N == 0) return;
  if (K == 0) return empty_sums(g);
  if (a.decode) OCTET_RUN(decode_operand, g.a, a.descaled, a.values);
  if (b.decode) OCTET_RUN(decode_operand, g.b, b.descaled, b.values);
  const bool scaled = !a.descaled || !b.descaled;
  const float alpha = (a.descaled ? 1.0f : *g.a.descales.f32()) * (b.descaled ? 1.0f : *g.b.descales.f32());
  const float* const bias = g.bias ? g.bias.f32() : nullptr;
  if (M <= few_rows && !g.a.transposed && !g.b.transposed && !g.accumulate) {
    const FewRows product{.a = a.values, .b = b.values, .d = g.d, .alpha = alpha, .bias = bias};
    return OCTET_RUN(multiply_few_rows, product);
  }
  const bool later = bool(sums);  // alpha and bias belong to the pass that rounds or adds
  multiply({.M = M,
            .N = N,
            .K = K,
            .type = compute,
            .result = later ? DType::f32 : g.d.dtype,
            .a_transposed = g.a.transposed,
            .b_transposed = g.b.transposed,
            .scaled = scaled && !later,
            .biased = bias != nullptr && !later,
            .accumulate = g.accumulate && !later},
           a.values.data, b.values.data, later ? sums.data : g.d.data, alpha, bias);
  if (later && g.accumulate) OCTET_RUN(add_sums, sums, alpha, bias, g.d);
  else if (later) OCTET_RUN(round_sums, sums, alpha, bias, g.d);
}

// Tensor cores multiply parts of bf16 many times faster than other units multiply f32.
bool in_parts(const Gemm& g, int generation) {
  const DType ta = g.a.codes.dtype, tb = g.b.codes.dtype;
  const auto has_parts = [](DType t) { return t == DType::f32 || t == DType::bf16; };
  if (generation < 8 || !has_parts(ta) || !has_parts(tb)) return false;
  return ta != tb || (ta == DType::f32 && g.d.dtype != DType::f32);
}

// Source: cuBLASLt's documentation, scaling modes by compute capability.
GemmWay way_on_gpu(const Gemm& g, int generation) {
  const DType ta = g.a.codes.dtype, tb = g.b.codes.dtype;
  if (reads_b_once(g)) return GemmWay::few_rows;
  if (in_parts(g, generation)) return GemmWay::parts;
  if (!is_fp8(ta) && !is_fp8(tb)) return ta == tb ? GemmWay::as_is : GemmWay::decoded;
  if (!is_fp8(ta) || !is_fp8(tb) || generation < 9) return GemmWay::decoded;  // A100 and older have no products of such codes
  using enum GemmScale;
  const auto a = gemm_scale(g.a), b = gemm_scale(g.b);
  const auto blocks = [](auto scale) { return scale == row_128 || scale == square_128; };
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1], K = g.a.cols();
  const bool hopper = generation < 10, library = (M | N | K) % 16 == 0 && !(ta == DType::e5m2 && tb == DType::e5m2);
  if (library && a == b && (a == tensor || (hopper && (a == row || a == row_128)))) return GemmWay::as_is;
  if (library && hopper && blocks(a) && blocks(b) && a != b) return GemmWay::as_is;
  if (library && !hopper && a == b && a == row_32 && K % 32 == 0) return GemmWay::tiled;
  const bool whole_rows = K % 16 == 0 && N * std::int64_t(size_of(g.d.dtype)) % 16 == 0;
  return hopper && a == row_128 && blocks(b) && whole_rows ? GemmWay::promoted : GemmWay::decoded;
}

GemmSpace space_on_gpu(Stream& stream, const Gemm& g, double flops) {
  GemmSpace s{.way = way_on_gpu(g, stream.target().generation), .a = {.values = g.a.codes}, .b = {.values = g.b.codes}};
  const auto scratch = [&](Shape shape, DType type) { return stream.empty(shape, type, Lifetime::scratch, Category::workspace); };
  if (s.way == GemmWay::few_rows || s.way == GemmWay::promoted) return s;
  if (s.way == GemmWay::tiled) s.a_scales = scratch(g.a.descales.shape, DType::u8), s.b_scales = scratch(g.b.descales.shape, DType::u8);
  const bool apart = s.way == GemmWay::parts && g.a.codes.dtype != g.b.codes.dtype;  // each part is a product
  if (s.way == GemmWay::parts) s.a = prepare_parts(stream, g.a, !apart), s.b = prepare_parts(stream, g.b, !apart);
  if (s.way == GemmWay::decoded) {
    const DType compute = fits_bf16(g.a) && fits_bf16(g.b) ? DType::bf16 : DType::f32;
    s.a = prepare_operand(stream, g.a, compute), s.b = prepare_operand(stream, g.b, compute);
    if (eight_bit(g)) stream.count({.emulated_flops = flops});
    if (!s.a.descaled || !s.b.descaled) s.factor = scratch({64}, DType::f32);
  }
  if (g.d.dtype != DType::f32) {
    // cuBLASLt does not round sums of f32 operands to 16 bits, nor those of one 16-bit type to the other; and where it has no kernel that
    // adds the bias at once, it rounds before it adds.
    const DType operands = s.a.values.dtype;
    const bool adds_bias = !s.factor && g.d.shape[1] % 8 == 0,
               rounds = operands == g.d.dtype || (is_fp8(operands) && g.d.dtype == DType::bf16);
    if (!rounds || apart || (g.bias && !adds_bias)) s.sums = scratch(g.d.shape, DType::f32);
    else if (g.bias) s.bias = scratch(g.bias.shape, g.d.dtype);
  }
  s.workspace = scratch({gemm_workspace_bytes}, DType::u8);
  return s;
}

void gemm_on_cpu(Stream& stream, const Gemm& g) {
  const DType compute = cpu_compute(stream.target(), g.a, g.b);
  const GemmReady a = prepare_operand(stream, g.a, compute), b = prepare_operand(stream, g.b, compute);
  Tensor sums;
  const bool rounded = g.d.dtype == DType::f16 || (g.d.dtype == DType::bf16 && (compute == DType::f32 || g.accumulate));
  const bool scaled_and_added = g.accumulate && (!a.descaled || !b.descaled);  // in one call, oneDNN leaves its fast kernels
  if (rounded || scaled_and_added) sums = stream.empty(g.d.shape, DType::f32, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::cpu) run(g, compute, a, b, sums);
}

}  // namespace

std::optional<GemmScale> gemm_scale(const Quantized& q) {
  if (!is_fp8(q.codes.dtype)) return GemmScale::none;
  if (q.descales.dtype == DType::e8m0) return q.block == ScaleBlock{1, 32} ? std::optional(GemmScale::row_32) : std::nullopt;
  if (q.block.whole_tensor()) return GemmScale::tensor;
  if (q.block.whole_rows()) return GemmScale::row;
  if (q.block == ScaleBlock{1, 128}) return GemmScale::row_128;
  return q.block == ScaleBlock{128, 128} ? std::optional(GemmScale::square_128) : std::nullopt;
}

void gemm(Stream& stream, const Gemm& g) {
  const bool cpu = stream.target().device == Device::cpu;
  check_gemm(g, cpu);
  const double flops = 2.0 * double(g.d.shape.count()) * double(g.a.cols());
  stream.count({.ops = 1, .flops = flops, .gemm_flops = flops, .fp8_flops = eight_bit(g) ? flops : 0});
  const Scope scope(stream);
  if (cpu) return gemm_on_cpu(stream, g);
  [[maybe_unused]] const GemmSpace space = space_on_gpu(stream, g, flops);  // counts its memory on the null device, too
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(gemm, stream.queue(), g, space, stream.target().deterministic || g.untimed);
}

void add_column_sums(Stream& stream, const Tensor& x, const Tensor& db) {
  check(x.shape.rank == 2 && db.shape == Shape{x.shape[1]} && db.dtype == DType::f32, "add_column_sums: db must be f32 [{}], got {} {}",
        x.shape[1], db.dtype, db.shape);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  const Scope scope(stream);
  Tensor parts;
  if (stream.target().device == Device::cuda) {                  // strips of rows are summed in parallel
    constexpr std::int64_t strip_rows = 128, most_strips = 256;  // enough strips to occupy a GPU, few enough to add quickly
    const std::int64_t strips = std::clamp<std::int64_t>(ceil_div(x.shape[0], strip_rows), 1, most_strips);
    parts = stream.empty({strips, x.shape[1]}, DType::f32, Lifetime::scratch, Category::workspace);
  }
  OCTET_LAUNCH(stream, add_column_sums, x, db, parts);
}

}  // namespace octet::ops
