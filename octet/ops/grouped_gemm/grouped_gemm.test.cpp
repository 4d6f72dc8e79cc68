#include "octet/ops/grouped_gemm/grouped_gemm.hpp"

#include <gtest/gtest.h>

#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/experts.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor, testing::map_of, testing::MapCase;

// Specs of activations and of stacks of matrices that recipes have.
struct Specs {
  QuantizeSpec activations, weights;
};
std::vector<Specs> specs_of_every_kind(Stream& stream) {
  std::vector<Specs> out{{{.format = DType::f32}, {.format = DType::f32}}};
  for (const QuantizeSpec& spec : testing::quantized_specs(stream)) out.push_back({spec, spec});
  const ScaleBlock row{1, 128}, square{128, 128};
  out.push_back({{.format = DType::e4m3, .rows = row, .cols = row}, {.format = DType::e4m3, .rows = square, .cols = square}});
  return out;
}

struct Operands {
  ExpertMap map;
  QTensor x, w, dy;
};

// Operands as a linear layer asks for them, of x [R, K], w [E N, K] and dy [R, N].
Operands make_operands(Stream& s, const MapCase& c, const Specs& specs, std::int64_t N, std::int64_t K, DType dtype, bool for_gemm) {
  Operands o;
  o.map = map_of(s, c);
  const auto gathered = [&](std::int64_t cols, int seed, bool cols_left) {
    QuantizeSpec spec = specs.activations;
    if (!spec.quantizes()) spec.format = dtype;
    Sink sink = make_sink(s, spec,
                          {.shape = {o.map.rows(), cols},
                           .dtype = dtype,
                           .cols = true,
                           .rows_region = Lifetime::run,
                           .cols_region = Lifetime::run,
                           .for_gemm = for_gemm,
                           .cols_left = cols_left});
    gather_rows(s, gaussian_tensor(s, {c.tokens, cols}, std::uint64_t(seed), dtype), o.map, sink);
    return sink.codes;
  };
  QuantizeSpec spec = specs.weights;
  if (!spec.quantizes()) spec.format = dtype;
  Sink w = make_sink(s, spec,
                     {.shape = {c.experts * N, K},
                      .dtype = dtype,
                      .cols = true,
                      .rows_region = Lifetime::run,
                      .cols_region = Lifetime::run,
                      .for_gemm = for_gemm});
  quantize(s, gaussian_tensor(s, {c.experts * N, K}, 3, dtype), w);
  o.x = gathered(K, 1, false), o.dy = gathered(N, 2, true), o.w = w.codes;
  return o;
}

// sum over i of f(i), in double, within the bound of an FP32 sum, and of products that were rounded to FP32 first.
template <class F>
void expect_sum(const Tensor& d, std::int64_t at, std::int64_t n, const F& f, double before = 0) {
  double sum = before, size = std::fabs(before);
  for (std::int64_t i = 0; i < n; ++i) {
    const double term = f(i);
    sum += term, size += std::fabs(term);
  }
  const auto [unit, smallest] = testing::rounding_to(d.dtype);
  const double bound = double(n + 8) * 0x1p-24 * size;
  ASSERT_NEAR(value_at(d, at), sum, bound + unit * (std::fabs(sum) + bound) + smallest) << to_text(d.shape) << " at " << at;
}

void expect_products(Stream& s, const MapCase& c, const Operands& o, std::int64_t N, std::int64_t K, DType dtype) {
  const std::int64_t R = o.map.rows();
  const Tensor y = s.empty({R, N}, dtype), dx = s.empty({R, K}, dtype), dw = s.empty({c.experts * N, K}, DType::f32),
               more = gaussian_tensor(s, {c.experts * N, K}, 5), before = s.empty(more.shape, DType::f32);
  copy(s, more, before);
  const auto& groups = o.map.groups;
  grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = groups, .d = y});
  grouped_gemm(s, GroupedRowsGemm{.a = o.dy.rows, .stack = o.w.cols, .stack_columns = true, .groups = groups, .d = dx});
  grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = groups, .d = dw});
  grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = groups, .d = more, .accumulate = true});
  const auto *const begin = groups.begin.as<std::int32_t>(), *const count = groups.count.as<std::int32_t>();
  for (std::int64_t e = 0; e < c.experts; ++e) {
    const std::int64_t first = begin[e], rows = count[e];
    for (std::int64_t r = first; r < first + rows; r += 1 + rows / 3) {
      for (std::int64_t n = 0; n < N; n += 7)
        expect_sum(y, r * N + n, K, [&](std::int64_t k) { return double(value_at(o.x.rows, r, k)) * value_at(o.w.rows, e * N + n, k); });
      for (std::int64_t k = 0; k < K; k += 11)
        expect_sum(dx, r * K + k, N, [&](std::int64_t n) { return double(value_at(o.dy.rows, r, n)) * value_at(o.w.cols, k, e * N + n); });
    }
    for (std::int64_t n = 0; n < N; n += 13)
      for (std::int64_t k = 0; k < K; k += 17) {
        const auto term = [&](std::int64_t i) { return double(value_at(o.dy.cols, n, first + i)) * value_at(o.x.cols, k, first + i); };
        const std::int64_t place = (e * N + n) * K + k;
        expect_sum(dw, place, rows, term);
        expect_sum(more, place, rows, term, before.f32()[place]);
      }
  }
}

TEST(GroupedGemm, ProductsAreThoseOfPlainLoopsForEveryKindOfScale) {
  for (const MapCase& c : {MapCase{1, 1, 1, 16}, MapCase{33, 2, 3, 16, testing::Choice::skewed},
                           MapCase{20, 2, 8, 8, testing::Choice::all_the_same}, MapCase{40, 3, 8, 16, testing::Choice::only_some}})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const DType compute : {DType::f32, gemm_compute()})
        for (const bool for_gemm : {false, true}) {
          Stream s(Device::cpu, {.gemm_compute = compute});
          for (const Specs& specs : specs_of_every_kind(s)) {
            const std::int64_t N = 128, K = 96;
            expect_products(s, c, make_operands(s, c, specs, N, K, dtype, for_gemm), N, K, dtype);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
}

}  // namespace
}  // namespace octet::ops
