#include <algorithm>
#include <cstring>

#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/multiply.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {
namespace {

// The address of one value of an operand.
const void* at(const Quantized& q, const Tensor& values, std::int64_t row, std::int64_t col) {
  const std::int64_t step = values.shape[1];
  return values.u8() + std::size_t(q.transposed ? col * step + row : row * step + col) * size_of(values.dtype);
}

// The factor of an operand's values for the products of expert e.
float factor_of(const Quantized& q, const GemmReady& ready, std::int64_t e) {
  return ready.descaled ? 1.0f : q.descales.f32()[descale_per_matrix(q) ? e : 0];
}

// One group's product: its places in the operands, and its rows of d.
struct Part {
  std::int64_t expert = 0;
  std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0, K = 0;
  Tensor d;
};

// Few tokens, as those of one step of texts that grow token by token: each expert's matrix is read once for its rows.
bool has_few_rows(const GroupedGemm& g) {
  constexpr int most = 64;
  if (g.along_k || g.stack_columns || g.a.transposed || g.b.transposed || g.accumulate) return false;
  std::int64_t rows = 0;
  for (std::int64_t e = 0; e < g.groups.size(); ++e) rows += g.groups.count.as<std::int32_t>()[e];
  return rows <= most;
}

void multiply_few(const GroupedGemm& g, const GemmReady& a, const GemmReady& b) {
  const auto *const begin = g.groups.begin.as<std::int32_t>(), *const count = g.groups.count.as<std::int32_t>();
  for (std::int64_t e = 0; e < g.groups.size(); ++e) {
    if (count[e] == 0) continue;
    const FewRows product{.a = a.values.rows(begin[e], count[e]),
                          .b = b.values.rows(e * g.N(), g.N()),
                          .d = g.d.rows(begin[e], count[e]),
                          .alpha = factor_of(g.a, a, e) * factor_of(g.b, b, e)};
    OCTET_RUN(multiply_few_rows, product);
  }
}

void multiply_part(const GroupedGemm& g, DType compute, const GemmReady& a, const GemmReady& b, const Tensor& sums, const Part& part) {
  const float alpha = factor_of(g.a, a, part.expert) * factor_of(g.b, b, part.expert);
  const bool later = bool(sums), scaled = !a.descaled || !b.descaled;
  const std::int64_t M = part.d.shape[0], N = part.d.shape[1];
  const Tensor to = later ? sums.rows(0, M) : part.d;
  multiply({.M = M,
            .N = N,
            .K = part.K,
            .type = compute,
            .result = to.dtype,
            .a_transposed = g.a.transposed,
            .b_transposed = g.b.transposed,
            .scaled = scaled && !later,
            .biased = false,
            .accumulate = g.accumulate && !later,
            .a_step = a.values.shape[1],
            .b_step = b.values.shape[1]},
           at(g.a, a.values, part.a_row, part.a_col), at(g.b, b.values, part.b_row, part.b_col), to.data, alpha, nullptr);
  if (later && g.accumulate) OCTET_RUN(add_sums, to, alpha, nullptr, part.d);
  else if (later) OCTET_RUN(round_sums, to, alpha, nullptr, part.d);
}

// Rows of a group are rounded up to a multiple of this, an eighth of them at most or 16: oneDNN compiles a product for each number of rows,
// so few numbers shall occur. Groups have whole tiles, so there are as many rows.
std::int64_t step_of(std::int64_t count, std::int64_t tile) {
  constexpr std::int64_t least = 16, most = 128;
  std::int64_t step = most;
  while (step > least && step * 8 > count) step /= 2;
  return tile % step == 0 ? step : tile;
}

}  // namespace

void grouped_gemm_on_cpu(const GroupedGemm& g, DType compute, const GemmReady& a, const GemmReady& b, const Tensor& sums) {
  const std::int64_t experts = g.groups.size(), rows = g.along_k ? g.K() : g.d.shape[0], N = g.N(), tile = g.groups.tile;
  const auto *const begin = g.groups.begin.as<std::int32_t>(), *const count = g.groups.count.as<std::int32_t>();
  check(begin[experts] <= rows, "grouped_gemm: groups end at row {} of {}", begin[experts], rows);
  if (a.decode) OCTET_RUN(decode_operand, g.a, a.descaled, a.values);
  if (b.decode) OCTET_RUN(decode_operand, g.b, b.descaled, b.values);
  if (has_few_rows(g)) return multiply_few(g, a, b);
  for (std::int64_t e = 0; e < experts; ++e) {
    // The other rows are zeros along K, and of no concern along M.
    const std::int64_t n = std::min(round_up(std::int64_t(count[e]), step_of(count[e], tile)), rows - begin[e]);
    const std::int64_t M = g.a.rows(), K = g.a.cols();
    Part part = g.along_k         ? Part{.expert = e, .a_col = begin[e], .b_col = begin[e], .K = n, .d = g.d.rows(e * M, M)}
                : g.stack_columns ? Part{.expert = e, .a_row = begin[e], .b_col = e * K, .K = K, .d = g.d.rows(begin[e], n)}
                                  : Part{.expert = e, .a_row = begin[e], .b_row = e * N, .K = K, .d = g.d.rows(begin[e], n)};
    if (part.d.count() == 0) continue;
    if (part.K > 0) multiply_part(g, compute, a, b, sums, part);
    else if (!g.accumulate) std::memset(part.d.data, 0, part.d.bytes());
  }
}

}  // namespace octet::ops
