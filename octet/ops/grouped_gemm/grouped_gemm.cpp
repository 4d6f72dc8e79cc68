#include "octet/ops/grouped_gemm/grouped_gemm.hpp"

#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"

namespace octet::ops {
namespace {

void check_common(const GroupedGemm& g, bool cpu) {
  check_row_groups("grouped_gemm", g.groups);
  check_gemm_operand("grouped_gemm", g.a, "a", cpu);
  check_gemm_operand("grouped_gemm", g.b, g.along_k ? "b" : "the stack", cpu);
  check(!descale_per_matrix(g.a) && !(g.along_k && descale_per_matrix(g.b)), "grouped_gemm: only a stack has a scale per matrix");
}

void on_cpu(Stream& stream, const GroupedGemm& g) {
  const DType compute = cpu_compute(stream.target(), g.a, g.b);
  const GemmReady a = prepare_operand(stream, g.a, compute), b = prepare_operand(stream, g.b, compute);
  const DType to = g.d.dtype;
  const bool rounded = to == DType::f16 || (to == DType::bf16 && (compute == DType::f32 || g.accumulate));
  Tensor sums;
  if (rounded || (g.accumulate && (!a.descaled || !b.descaled)))
    sums = stream.empty({g.along_k ? g.M() : g.d.shape[0], g.N()}, DType::f32, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::cpu) grouped_gemm_on_cpu(g, compute, a, b, sums);
}

void run(Stream& stream, const GroupedGemm& g) {
  const std::int64_t rows = g.along_k ? g.K() : g.d.shape[0], counted = g.groups.counted > 0 ? g.groups.counted : rows;
  const double flops = 2.0 * double(g.d.shape[1]) * double(g.along_k ? g.a.rows() : g.K()) * double(counted);
  const bool eight_bit = g.a.eight_bit() || g.b.eight_bit();
  stream.count({.ops = 1, .flops = flops, .gemm_flops = flops, .fp8_flops = eight_bit ? flops : 0});
  const Scope scope(stream);
  if (stream.target().device == Device::cpu) return on_cpu(stream, g);
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(grouped_gemm, stream.queue(), g);
}

}  // namespace

void grouped_gemm(Stream& stream, const GroupedRowsGemm& given) {
  const GroupedGemm g{.a = given.a,
                      .b = given.stack,
                      .groups = given.groups,
                      .d = given.d,
                      .stack_columns = given.stack_columns,
                      .accumulate = given.accumulate,
                      .fast_accumulation = given.fast_accumulation};
  check_common(g, stream.target().device == Device::cpu);
  const std::int64_t experts = g.groups.size(), rows = g.a.rows(), K = g.a.cols();
  if (g.stack_columns)
    check(g.b.cols() == experts * K, "grouped_gemm: columns of the stack must be [N, {}] for {} experts, got [{}, {}]", experts * K,
          experts, g.b.rows(), g.b.cols());
  else
    check(g.b.cols() == K && g.b.rows() % experts == 0, "grouped_gemm: the stack must be [{} N, {}], got [{}, {}]", experts, K, g.b.rows(),
          g.b.cols());
  const std::int64_t N = g.stack_columns ? g.b.rows() : g.b.rows() / experts;
  check(g.d.shape == Shape{rows, N} && is_activation(g.d.dtype), "grouped_gemm: d must be [{}, {}] of f32, bf16 or f16, got {} {}", rows, N,
        g.d.shape, g.d.dtype);
  run(stream, g);
}

void grouped_gemm(Stream& stream, const GroupedColumnsGemm& given) {
  const GroupedGemm g{.a = given.a,
                      .b = given.b,
                      .groups = given.groups,
                      .d = given.d,
                      .along_k = true,
                      .accumulate = given.accumulate,
                      .fast_accumulation = given.fast_accumulation};
  check_common(g, stream.target().device == Device::cpu);
  const std::int64_t M = g.a.rows(), N = g.b.rows();
  check(g.a.cols() == g.b.cols(), "grouped_gemm: a and b must have one number of rows, got [{}, {}] and [{}, {}]", M, g.a.cols(), N,
        g.b.cols());
  check(g.d.shape == Shape{g.groups.size() * M, N} && (g.d.dtype == DType::f32 || g.d.dtype == DType::bf16),
        "grouped_gemm: d must be [{}, {}] of f32 or bf16, got {} {}", g.groups.size() * M, N, g.d.shape, g.d.dtype);
  run(stream, g);
}

}  // namespace octet::ops
