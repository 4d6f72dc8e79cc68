#include "octet/ops/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/testing.hpp"

namespace octet::ops {
namespace {

using testing::gaussian;

Tensor upload(Stream& stream, Shape shape, DType dtype, const std::vector<float>& values) {
  const Tensor t = stream.empty(shape, dtype, Lifetime::run);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::bf16) t.bf16()[i] = to_bf16(values[i]);
    else t.f32()[i] = values[i];
  }
  return t;
}

// A GEMM operand [rows, cols] from the values of a source that is quantized first, in the orientation asked for.
struct Kind {
  const char* name;
  QuantizeSpec spec;
  bool cols = false;  // the transpose of a source [cols, rows]
};

Quantized operand(Stream& stream, const Kind& kind, std::int64_t rows, std::int64_t cols, std::uint64_t seed, DType dtype = DType::bf16) {
  const Shape shape = kind.cols ? Shape{cols, rows} : Shape{rows, cols};
  const Tensor x = upload(stream, shape, dtype, gaussian(std::size_t(shape.count()), seed, 0.3));
  Sink sink = make_sink(stream, kind.spec, {.shape = shape, .dtype = dtype, .rows = !kind.cols, .cols = kind.cols, .rows_region = Lifetime::run,
                                            .cols_region = Lifetime::run});
  quantize(stream, x, sink);
  return kind.cols ? sink.codes.cols : sink.codes.rows;
}

std::vector<Kind> kinds() {
  using enum ScaleRule;
  const ScaleBlock row{1, 0}, v32{1, 32}, v128{1, 128}, square{128, 128};
  const QuantizeSpec plain{.format = DType::bf16}, tensor{.format = DType::e4m3}, tensor5{.format = DType::e5m2};
  const QuantizeSpec rows{.format = DType::e4m3, .rule = power_of_two, .rows = row, .cols = row}, mx{.format = DType::e4m3, .rule = e8m0, .rows = v32, .cols = v32};
  const QuantizeSpec blocks{.format = DType::e4m3, .rule = power_of_two, .rows = v128, .cols = v128}, tiles{.format = DType::e4m3, .rule = power_of_two, .rows = square, .cols = square};
  const QuantizeSpec uneven{.format = DType::e4m3, .rule = quotient, .rows = v128, .cols = v128};
  return {{"plain", plain}, {"plain, transposed", plain, true}, {"tensor", tensor}, {"tensor e5m2", tensor5, true}, {"row", rows}, {"row of columns", rows, true},
          {"1x128", blocks}, {"1x128 of columns", blocks, true}, {"128x128", tiles}, {"1x32 e8m0", mx}, {"1x32 e8m0 of columns", mx, true}, {"1x128 quotient", uneven}};
}

/// The exact result and, beside it, sum |a||b| + |bias| + |before|: what error bounds are made of.
struct Exact {
  double value, magnitude;
};
Exact exact(const Quantized& a, const Quantized& b, std::int64_t m, std::int64_t n, double bias, double before) {
  Exact e{bias + before, std::fabs(bias) + std::fabs(before)};
  for (std::int64_t k = 0; k < a.cols(); ++k) {
    const double p = double(value_at(a, m, k)) * double(value_at(b, n, k));
    e.value += p, e.magnitude += std::fabs(p);
  }
  return e;
}

struct Try {
  Shape mnk;
  DType compute, result;
  bool bias = false, accumulate = false;
};

void expect_close(const Kind& ka, const Kind& kb, const Try& t) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const std::string what = format("{} x {}, {}, computed in {}, result {}{}{}", std::string_view(ka.name), std::string_view(kb.name), t.mnk, t.compute, t.result,
                                  t.bias ? ", bias" : "", t.accumulate ? ", accumulate" : "");
  Stream stream(Device::cpu, {.gemm_compute = t.compute});
  const Quantized a = operand(stream, ka, M, K, 1), b = operand(stream, kb, N, K, 2);
  const std::vector<float> before = gaussian(std::size_t(M * N), 3), bias_values = gaussian(std::size_t(N), 4);
  const Tensor d = upload(stream, {M, N}, t.result, before), bias = upload(stream, {N}, DType::f32, bias_values);
  gemm(stream, {.a = a, .b = b, .d = d, .bias = t.bias ? bias : Tensor{}, .accumulate = t.accumulate});
  // K products and sums in FP32, two more roundings for the descales of either operand, alpha, bias, accumulation; then one to the result.
  const double n = double(K) + 8;
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t j = 0; j < N; ++j) {
      const Exact e = exact(a, b, m, j, t.bias ? bias_values[std::size_t(j)] : 0, t.accumulate ? before[std::size_t(m * N + j)] : 0);
      const double bound = testing::dot_bound(n, testing::unit_f32, e.magnitude) + (t.result == DType::bf16 ? testing::unit_bf16 * 1.01 * std::fabs(e.value) : 0);
      ASSERT_NEAR(value_at(d, m * N + j), e.value, bound + 1e-37) << what << " at " << m << ", " << j;
    }
}

TEST(Gemm, EveryPairOfOperandsIsWithinTheBoundOfItsExactProduct) {
  const auto all = kinds();
  for (const Kind& a : all)
    for (const Kind& b : all) expect_close(a, b, {{9, 17, 150}, DType::f32, DType::f32});
}

TEST(Gemm, EveryFormOfResultIsWithinTheBound) {
  const auto all = kinds();
  for (const DType compute : {DType::f32, DType::bf16})
    for (const Kind* k : {&all[0], &all[1], &all[2], &all[6], &all[10]})
      for (const bool bias : {false, true}) {
        expect_close(*k, all[3], {{33, 20, 130}, compute, DType::bf16, bias});
        expect_close(*k, *k, {{33, 20, 130}, compute, DType::bf16, bias});
        for (const bool accumulate : {false, true}) {
          expect_close(*k, all[3], {{33, 20, 130}, compute, DType::f32, bias, accumulate});
          expect_close(*k, *k, {{33, 20, 130}, compute, DType::f32, bias, accumulate});
        }
      }
}

TEST(Gemm, EmptyAndSingleDimensionsWork) {
  const auto all = kinds();
  for (const DType result : {DType::f32, DType::bf16})
    for (const Shape& s : {Shape{0, 5, 7}, Shape{5, 0, 7}, Shape{5, 7, 0}, Shape{1, 1, 1}, Shape{1, 19, 33}, Shape{19, 1, 33}, Shape{5, 7, 1}})
      for (const bool bias : {false, true})
        for (const Kind* k : {&all[0], &all[1], &all[2], &all[8]}) expect_close(*k, all[0], {s, DType::f32, result, bias, result == DType::f32 && bias});
}

// Bytes of workspace that one GEMM takes in a dry run for a GPU.
std::int64_t gpu_workspace(const Kind& ka, const Kind& kb, const Shape& mnk, DType result, bool bias = false) {
  Stream cpu(Device::cpu), dry(Device::null, {.device = Device::cuda, .multiprocessors = 132});
  const Quantized a = operand(cpu, ka, mnk[0], mnk[2], 1), b = operand(cpu, kb, mnk[1], mnk[2], 2);
  gemm(dry, {.a = a, .b = b, .d = dry.empty({mnk[0], mnk[1]}, result), .bias = bias ? dry.empty({mnk[1]}, DType::f32) : Tensor{}});
  return std::int64_t(dry.arena().peak().by_category[std::size_t(Category::workspace)]) - gemm_library_bytes;
}

TEST(Gemm, DryRunForAGpuDecodesOnlyWhatItsLibraryDoesNotMultiply) {
  const auto all = kinds();
  const Kind &plain = all[0], &tensor = all[2], &tensor5 = all[3], &row = all[4], &blocks = all[6], &tiles = all[8], &mx = all[9];
  const Shape even{64, 128, 256}, odd{64, 128, 250};
  for (const auto& [a, b] : {std::pair(&plain, &plain), {&tensor, &tensor}, {&tensor5, &tensor}, {&row, &row}, {&blocks, &blocks}, {&blocks, &tiles}, {&tiles, &blocks}})
    EXPECT_EQ(gpu_workspace(*a, *b, even, DType::bf16), 0) << a->name << " x " << b->name;
  const std::int64_t as_bf16 = 2 * (64 + 128) * 256;
  for (const auto& [a, b] : {std::pair(&mx, &mx), {&tiles, &tiles}, {&blocks, &row}})
    EXPECT_EQ(gpu_workspace(*a, *b, even, DType::bf16), as_bf16) << a->name << " x " << b->name;
  EXPECT_EQ(gpu_workspace(tensor5, tensor5, even, DType::bf16), as_bf16 + 256);  // the product of both descales
  EXPECT_GT(gpu_workspace(tensor, tensor, odd, DType::bf16), 0);
  EXPECT_EQ(gpu_workspace(plain, plain, even, DType::bf16, true), 2 * 128);
  EXPECT_EQ(gpu_workspace(plain, plain, even, DType::f32, true), 0);
  EXPECT_EQ(gpu_workspace(plain, plain, {64, 124, 256}, DType::bf16, true), 4 * 64 * 124);
}

}  // namespace
}  // namespace octet::ops
