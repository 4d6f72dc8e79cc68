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
  bool per_matrix = false;  // each expert's matrix has a scale
};
std::vector<Specs> specs_of_every_kind(Stream& stream) {
  std::vector<Specs> out{{{.format = DType::f32}, {.format = DType::f32}}};
  for (const QuantizeSpec& spec : testing::quantized_specs(stream)) out.push_back({spec, spec});
  for (const ScaleRule rule : {ScaleRule::quotient, ScaleRule::power_of_two}) {
    const QuantizeSpec tensor{.format = DType::e4m3, .rule = rule};
    out.push_back({tensor, tensor, true});
  }
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
  const SinkRequest want{.shape = {c.experts * N, K},
                         .dtype = dtype,
                         .cols = true,
                         .rows_region = Lifetime::run,
                         .cols_region = Lifetime::run,
                         .for_gemm = for_gemm};
  const Tensor stack = gaussian_tensor(s, want.shape, 3, dtype);
  if (specs.per_matrix) spec.scale_each(N);
  Sink w = make_sink(s, spec, want);
  quantize(s, stack, w);
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
               more = gaussian_tensor(s, {c.experts * N, K}, 5), before = s.empty(more.shape, DType::f32),
               added = gaussian_tensor(s, {R, N}, 6, dtype), y_before = s.empty(added.shape, dtype);
  copy(s, more, before), copy(s, added, y_before);
  const auto& groups = o.map.groups;
  grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = groups, .d = y});
  grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = groups, .d = added, .accumulate = true});
  grouped_gemm(s, GroupedRowsGemm{.a = o.dy.rows, .stack = o.w.cols, .stack_columns = true, .groups = groups, .d = dx});
  grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = groups, .d = dw});
  grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = groups, .d = more, .accumulate = true});
  const auto *const begin = groups.begin.as<std::int32_t>(), *const count = groups.count.as<std::int32_t>();
  for (std::int64_t e = 0; e < c.experts; ++e) {
    const std::int64_t first = begin[e], rows = count[e];
    for (std::int64_t r = first; r < first + rows; r += 1 + rows / 3) {
      for (std::int64_t n = 0; n < N; n += 7) {
        const auto term = [&](std::int64_t k) { return double(value_at(o.x.rows, r, k)) * value_at(o.w.rows, e * N + n, k); };
        expect_sum(y, r * N + n, K, term);
        expect_sum(added, r * N + n, K, term, double(value_at(y_before, r * N + n)));
      }
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
  for (const MapCase& c :
       {MapCase{1, 1, 1, 16}, MapCase{33, 2, 3, 16, testing::Choice::skewed}, MapCase{20, 2, 8, 8, testing::Choice::all_the_same},
        MapCase{40, 3, 8, 16, testing::Choice::only_some}, MapCase{300, 2, 3, 128, testing::Choice::skewed}})
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

TEST(GroupedGemm, DryRunNeedsTheSameMemoryAndCountsTheBoundOfRows) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const MapCase c{40, 2, 4, 16};
    const Operands o = make_operands(s, c, {{.format = DType::bf16}, {.format = DType::bf16}}, 32, 48, DType::bf16, true);
    const std::int64_t R = o.map.rows();
    const double before = s.work().flops;
    grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = o.map.groups, .d = s.zeros({R, 32}, DType::bf16)});
    EXPECT_EQ(s.work().flops - before, 2.0 * double(R) * 32 * 48);
    grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = o.map.groups, .d = s.zeros({4 * 32, 48}, DType::f32)});
    EXPECT_EQ(s.work().flops - before, 4.0 * double(R) * 32 * 48);
  });
}

TEST(GroupedGemm, TheBitsDoNotDependOnThreads) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "oneDNN's products of AVX2 add in an order that depends on threads";
  std::vector<std::vector<std::uint8_t>> seen;
  for (const int threads : {1, 3}) {
    const testing::WithThreads with(threads);
    Stream s(Device::cpu);
    const MapCase c{129, 2, 4, 16, testing::Choice::skewed};
    const Operands o = make_operands(s, c, {{.format = DType::f32}, {.format = DType::f32}}, 64, 48, DType::f32, true);
    const Tensor y = s.zeros({o.map.rows(), 64}, DType::f32), dw = s.zeros({4 * 64, 48}, DType::f32);
    grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = o.map.groups, .d = y});
    grouped_gemm(s, GroupedColumnsGemm{.a = o.dy.cols, .b = o.x.cols, .groups = o.map.groups, .d = dw});
    seen.push_back(testing::bytes(y));
    const auto of_dw = testing::bytes(dw);
    seen.back().insert(seen.back().end(), of_dw.begin(), of_dw.end());
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(GroupedGemm, RowsWithoutATokenMayHoldNan) {
  Stream s(Device::cpu);
  const MapCase c{21, 2, 3, 16};
  const Operands o = make_operands(s, c, {{.format = DType::f32}, {.format = DType::f32}}, 16, 24, DType::f32, false);
  const Tensor y[2] = {s.zeros({o.map.rows(), 16}, DType::f32), s.zeros({o.map.rows(), 16}, DType::f32)};
  const GroupedRowsGemm clean{.a = o.x.rows, .stack = o.w.rows, .groups = o.map.groups, .d = y[0]};
  grouped_gemm(s, clean);
  for (std::int64_t r = 0; r < o.map.rows(); ++r)
    for (std::int64_t k = 0; o.map.source.as<std::int32_t>()[r] < 0 && k < 24; ++k) o.x.rows.codes.f32()[r * 24 + k] = NAN;
  grouped_gemm(s, GroupedRowsGemm{.a = o.x.rows, .stack = o.w.rows, .groups = o.map.groups, .d = y[1]});
  for (std::int64_t r = 0; r < o.map.rows(); ++r)
    for (std::int64_t n = 0; o.map.source.as<std::int32_t>()[r] >= 0 && n < 16; ++n) {
      ASSERT_EQ(y[0].f32()[r * 16 + n], y[1].f32()[r * 16 + n]);
    }
}

TEST(GroupedGemm, RefusesWhatDoesNotFit) {
  Stream s(Device::null);
  const ExpertMap map = empty_expert_map(s, 8, 2, 4, 16, Lifetime::run);
  const auto matrix = [&](std::int64_t rows, std::int64_t cols, bool turned = false) {
    return Quantized{.codes = s.empty(turned ? Shape{cols, rows} : Shape{rows, cols}, DType::bf16), .transposed = turned};
  };
  const std::int64_t R = map.rows();
  const auto rows = [&](const Quantized& a, const Quantized& stack, bool columns, Shape d) {
    grouped_gemm(s, GroupedRowsGemm{.a = a, .stack = stack, .stack_columns = columns, .groups = map.groups, .d = s.empty(d, DType::bf16)});
  };
  EXPECT_NO_THROW(rows(matrix(R, 24), matrix(4 * 16, 24), false, {R, 16}));
  EXPECT_NO_THROW(rows(matrix(R, 16), matrix(24, 4 * 16, true), true, {R, 24}));
  EXPECT_THROW(rows(matrix(R, 24), matrix(4 * 16, 23), false, {R, 16}), ContractError);
  EXPECT_THROW(rows(matrix(R, 24), matrix(63, 24), false, {R, 16}), ContractError) << "63 rows are no 4 matrices";
  EXPECT_THROW(rows(matrix(R, 24), matrix(4 * 16, 24), false, {R, 17}), ContractError);
  EXPECT_THROW(rows(matrix(R, 16), matrix(24, 60, true), true, {R, 24}), ContractError);
  const auto columns = [&](const Quantized& a, const Quantized& b, Shape d, DType dtype) {
    grouped_gemm(s, GroupedColumnsGemm{.a = a, .b = b, .groups = map.groups, .d = s.empty(d, dtype)});
  };
  EXPECT_NO_THROW(columns(matrix(16, R, true), matrix(24, R, true), {64, 24}, DType::f32));
  EXPECT_THROW(columns(matrix(16, R), matrix(24, R - 16), {64, 24}, DType::f32), ContractError);
  EXPECT_THROW(columns(matrix(16, R), matrix(24, R), {16, 24}, DType::f32), ContractError);
  EXPECT_THROW(columns(matrix(16, R), matrix(24, R), {64, 24}, DType::f16), ContractError);
}

}  // namespace
}  // namespace octet::ops
