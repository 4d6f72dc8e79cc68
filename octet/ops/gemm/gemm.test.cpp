#include "octet/ops/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "octet/ops/quantize/quantize.hpp"
#include "octet/tensor/cpu/isa.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

// What a CPU multiplies in: f32, and BF16 where oneDNN has it, which needs AVX-512.
std::vector<DType> computed_in() {
  if (cpu::detected_isa() == cpu::Isa::v4) return {DType::f32, DType::bf16};
  return {DType::f32};
}

using testing::gaussian;

Tensor upload(Stream& stream, Shape shape, DType dtype, const std::vector<float>& values) {
  const Tensor t = stream.empty(shape, dtype, Lifetime::run);
  for (std::size_t i = 0; i < values.size(); ++i) testing::put(t, std::int64_t(i), values[i]);
  return t;
}

// A GEMM operand [rows, cols] from the values of a source that is quantized first, in the orientation asked for.
struct Kind {
  const char* name;
  QuantizeSpec spec;
  bool cols = false;  // the transpose of a source [cols, rows]
  DType source = DType::bf16;
};

Quantized quantized(Stream& stream, const Kind& kind, const Tensor& x) {
  Sink sink = make_sink(stream, kind.spec,
                        {.shape = x.shape,
                         .dtype = x.dtype,
                         .rows = !kind.cols,
                         .cols = kind.cols,
                         .rows_region = Lifetime::run,
                         .cols_region = Lifetime::run});
  quantize(stream, x, sink);
  return kind.cols ? sink.codes.cols : sink.codes.rows;
}

Quantized operand(Stream& stream, const Kind& kind, std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const Shape shape = kind.cols ? Shape{cols, rows} : Shape{rows, cols};
  return quantized(stream, kind, upload(stream, shape, kind.source, gaussian(std::size_t(shape.count()), seed, 0.3)));
}

std::vector<Kind> kinds() {
  using enum ScaleRule;
  const ScaleBlock row{1, 0}, v32{1, 32}, v128{1, 128}, square{128, 128};
  const QuantizeSpec plain{.format = DType::bf16}, tensor{.format = DType::e4m3}, tensor5{.format = DType::e5m2};
  const QuantizeSpec rows{.format = DType::e4m3, .rule = power_of_two, .rows = row, .cols = row},
      mx{.format = DType::e4m3, .rule = e8m0, .rows = v32, .cols = v32};
  const QuantizeSpec blocks{.format = DType::e4m3, .rule = power_of_two, .rows = v128, .cols = v128},
      tiles{.format = DType::e4m3, .rule = power_of_two, .rows = square, .cols = square};
  const QuantizeSpec uneven{.format = DType::e4m3, .rule = quotient, .rows = v128, .cols = v128};
  return {{"plain", plain},
          {"plain, transposed", plain, true},
          {"tensor", tensor},
          {"tensor e5m2", tensor5, true},
          {"row", rows},
          {"row of columns", rows, true},
          {"1x128", blocks},
          {"1x128 of columns", blocks, true},
          {"128x128", tiles},
          {"1x32 e8m0", mx},
          {"1x32 e8m0 of columns", mx, true},
          {"1x128 quotient", uneven},
          {"f16", {.format = DType::f16}, false, DType::f16},
          {"f16, transposed", {.format = DType::f16}, true, DType::f16}};
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
  const std::string what = format("{} x {}, {}, computed in {}, result {}{}{}", std::string_view(ka.name), std::string_view(kb.name), t.mnk,
                                  t.compute, t.result, t.bias ? ", bias" : "", t.accumulate ? ", accumulate" : "");
  Stream stream(Device::cpu, {.gemm_compute = t.compute});
  const Quantized a = operand(stream, ka, M, K, 1), b = operand(stream, kb, N, K, 2);
  const std::vector<float> before = gaussian(std::size_t(M * N), 3), bias_values = gaussian(std::size_t(N), 4);
  const Tensor d = upload(stream, {M, N}, t.result, before), bias = upload(stream, {N}, DType::f32, bias_values);
  std::vector<double> was;
  for (std::int64_t i = 0; i < d.count(); ++i) was.push_back(value_at(d, i));
  gemm(stream, {.a = a, .b = b, .d = d, .bias = t.bias ? bias : Tensor{}, .accumulate = t.accumulate});
  // K products and sums in FP32, two more roundings for the descales of either operand, alpha, bias, accumulation; then one to the result.
  const double n = double(K) + 8;
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t j = 0; j < N; ++j) {
      const Exact e = exact(a, b, m, j, t.bias ? bias_values[std::size_t(j)] : 0, t.accumulate ? was[std::size_t(m * N + j)] : 0);
      const double bound = testing::dot_bound(n, testing::unit_f32, e.magnitude) +
                           testing::rounding_to(t.result).unit * 1.01 * std::fabs(e.value) + testing::rounding_to(t.result).smallest;
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
  for (const DType compute : computed_in())
    for (const Kind* k : {&all[0], &all[1], &all[2], &all[6], &all[10], &all[12], &all[13]})
      for (const bool bias : {false, true}) {
        expect_close(*k, all[3], {{33, 20, 130}, compute, DType::bf16, bias});
        expect_close(*k, *k, {{33, 20, 130}, compute, DType::bf16, bias});
        for (const bool accumulate : {false, true}) {
          expect_close(*k, all[3], {{33, 20, 130}, compute, DType::f32, bias, accumulate});
          expect_close(*k, *k, {{33, 20, 130}, compute, DType::f32, bias, accumulate});
          expect_close(*k, *k, {{33, 20, 130}, compute, DType::bf16, bias, accumulate});
          expect_close(*k, *k, {{33, 20, 130}, compute, DType::f16, bias, accumulate});
        }
      }
}

TEST(Gemm, EmptyAndSingleDimensionsWork) {
  const auto all = kinds();
  for (const DType result : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& s :
         {Shape{0, 5, 7}, Shape{5, 0, 7}, Shape{5, 7, 0}, Shape{1, 1, 1}, Shape{1, 19, 33}, Shape{19, 1, 33}, Shape{5, 7, 1}})
      for (const bool bias : {false, true})
        for (const Kind* k : {&all[0], &all[1], &all[2], &all[8], &all[12]})
          expect_close(*k, all[0], {s, DType::f32, result, bias, result == DType::f32 && bias});
}

TEST(Gemm, ARowOfFewHasTheSameBitsWhateverRowsAreBesideIt) {
  for (const DType compute : computed_in())
    for (const std::int64_t K : {1, 31, 64, 200}) {
      const auto all = kinds();
      for (const std::int64_t M : {1, 2, 8}) expect_close(all[0], all[2], {{M, 70, K}, compute, DType::bf16, true});
      Stream stream(Device::cpu, {.gemm_compute = compute});
      const Quantized a = operand(stream, all[0], 5, K, 1), b = operand(stream, all[0], 70, K, 2);
      const Tensor together = stream.empty({5, 70}, DType::f32);
      gemm(stream, {.a = a, .b = b, .d = together});
      for (std::int64_t m = 0; m < 5; ++m) {
        const Tensor alone = stream.empty({1, 70}, DType::f32);
        const Quantized row{.codes = a.codes.rows(m, 1)};
        const testing::WithThreads threads(int(m) % 2 + 1);
        gemm(stream, {.a = row, .b = b, .d = alone});
        EXPECT_EQ(testing::bytes(alone), testing::bytes(together.rows(m, 1))) << K;
      }
    }
}

// Bytes of workspace that one GEMM takes in a dry run for a GPU.
std::int64_t gpu_workspace(const Kind& ka, const Kind& kb, const Shape& mnk, DType result, bool bias = false, int generation = 9) {
  Stream cpu(Device::cpu), dry(Device::null, {.device = Device::cuda, .multiprocessors = 132, .generation = generation});
  const Quantized a = operand(cpu, ka, mnk[0], mnk[2], 1), b = operand(cpu, kb, mnk[1], mnk[2], 2);
  gemm(dry, {.a = a, .b = b, .d = dry.empty({mnk[0], mnk[1]}, result), .bias = bias ? dry.empty({mnk[1]}, DType::f32) : Tensor{}});
  return std::int64_t(dry.arena().peak().by_category[std::size_t(Category::workspace)]) - gemm_workspace_bytes;
}

TEST(Gemm, DryRunForAGpuDecodesOnlyWhatItsLibraryDoesNotMultiply) {
  const auto all = kinds();
  const Kind &plain = all[0], &tensor = all[2], &tensor5 = all[3], &row = all[4], &blocks = all[6], &tiles = all[8], &mx = all[9];
  const Shape even{64, 128, 256}, odd{64, 128, 250};
  for (const auto& [a, b] : {std::pair(&plain, &plain),
                             {&tensor, &tensor},
                             {&tensor5, &tensor},
                             {&row, &row},
                             {&blocks, &blocks},
                             {&blocks, &tiles},
                             {&tiles, &blocks}})
    EXPECT_EQ(gpu_workspace(*a, *b, even, DType::bf16), 0) << a->name << " x " << b->name;
  for (const Kind* b : {&blocks, &tiles}) {                                                                     // by the promoted kernel
    EXPECT_EQ(gpu_workspace(blocks, *b, {60, 120, 240}, DType::bf16, true), -gemm_workspace_bytes) << b->name;  // none at all
    EXPECT_EQ(gpu_workspace(blocks, *b, {60, 124, 240}, DType::f32), -gemm_workspace_bytes) << b->name;
    EXPECT_GT(gpu_workspace(blocks, *b, {60, 124, 240}, DType::bf16), 0) << b->name;
    EXPECT_GT(gpu_workspace(blocks, *b, {60, 120, 248}, DType::bf16), 0) << b->name;
  }
  const std::int64_t as_bf16 = 2 * (64 + 128) * 256;
  for (const auto& [a, b] : {std::pair(&mx, &mx), {&tiles, &tiles}, {&blocks, &row}})
    EXPECT_EQ(gpu_workspace(*a, *b, even, DType::bf16), as_bf16) << a->name << " x " << b->name;
  EXPECT_EQ(gpu_workspace(tensor5, tensor5, even, DType::bf16), as_bf16 + 256);  // the product of both descales
  EXPECT_GT(gpu_workspace(tensor, tensor, odd, DType::bf16), 0);
  EXPECT_EQ(gpu_workspace(plain, plain, even, DType::bf16, true), 2 * 128);
  EXPECT_EQ(gpu_workspace(plain, plain, even, DType::f32, true), 0);
  const Kind& f16 = all[12];
  EXPECT_EQ(gpu_workspace(f16, f16, even, DType::f16), 0);
  EXPECT_EQ(gpu_workspace(f16, f16, even, DType::f16, true), 2 * 128);
  EXPECT_EQ(gpu_workspace(f16, f16, even, DType::bf16), 4 * 64 * 128);  // the library does not round to the other type of 16 bits
  EXPECT_EQ(gpu_workspace(plain, plain, {64, 124, 256}, DType::bf16, true), 4 * 64 * 124);
}

TEST(Gemm, DryRunForBlackwellTilesScalesOf32AndDecodesRowsAndBlocksOf128) {
  const auto all = kinds();
  const Kind &tensor = all[2], &row = all[4], &blocks = all[6], &tiles = all[8], &mx = all[9];
  const Shape even{64, 128, 256};
  const auto workspace = [&](const Kind& a, const Kind& b) { return gpu_workspace(a, b, even, DType::bf16, false, 10); };
  EXPECT_EQ(workspace(tensor, tensor), 0);
  EXPECT_EQ(workspace(mx, mx), 2 * 128 * 8);  // an e8m0 for 32 values, rows padded to 128
  for (const auto& [a, b] : {std::pair(&row, &row), {&blocks, &blocks}, {&blocks, &tiles}})
    EXPECT_GE(workspace(*a, *b), 2 * (64 + 128) * 256) << a->name;
}

/// The value of a code without its descale, and the descale.
float code_at(const Quantized& q, std::int64_t r, std::int64_t k) { return decode<E4M3>(q.codes.u8()[r * q.cols() + k]); }
float descale_at(const Quantized& q, std::int64_t r, std::int64_t k) {
  const auto stride = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  return q.descales.f32()[r / q.block.rows * stride.row_block + k / q.block.cols * stride.col_block];
}

/// One element as 128-column block GEMMs are specified: a block's products are summed in FP32, multiplied by a's descale, then b's with a
/// fused addition to the total. Source: Transformer Engine, blockwise_fp8_gemm_reference.py.
float block_sum(const Quantized& a, const Quantized& b, std::int64_t m, std::int64_t n) {
  float y = 0;
  for (std::int64_t k0 = 0; k0 < a.cols(); k0 += 128) {
    float p = 0;
    for (std::int64_t k = k0; k < std::min(a.cols(), k0 + 128); ++k) p += code_at(a, m, k) * code_at(b, n, k);
    p *= descale_at(a, m, k0);
    y = std::fma(p, descale_at(b, n, k0), y);
  }
  return y;
}

TEST(Gemm, BlocksOf128AreWithinTheBoundOfTheirReferenceLoop) {
  const auto all = kinds();
  const Kind &vectors = all[6], &of_columns = all[7], &squares = all[8];
  const std::int64_t M = 33, N = 140, K = 300;
  for (const DType compute : computed_in())
    for (const auto& [ka, kb] : {std::pair{vectors, squares}, std::pair{of_columns, of_columns}, std::pair{squares, vectors}}) {
      Stream stream(Device::cpu, {.gemm_compute = compute});
      const Quantized a = operand(stream, ka, M, K, 1), b = operand(stream, kb, N, K, 2);
      const Tensor d = stream.empty({M, N}, DType::f32, Lifetime::run);
      gemm(stream, {.a = a, .b = b, .d = d});
      for (std::int64_t m = 0; m < M; ++m)
        for (std::int64_t n = 0; n < N; ++n) {
          const Exact e = exact(a, b, m, n, 0, 0);
          const double bound = testing::dot_bound(double(K) + 8, testing::unit_f32, e.magnitude);
          const double loop = block_sum(a, b, m, n);
          ASSERT_NEAR(loop, e.value, bound) << ka.name << " x " << kb.name << " at " << m << ", " << n;
          ASSERT_NEAR(d.f32()[m * N + n], loop, 2 * bound) << ka.name << " x " << kb.name << " at " << m << ", " << n;
        }
    }
}

// Sums that only grow are where a short accumulator would show: their low bits would be lost, always downwards.
TEST(Gemm, ManyPositiveProductsKeepTheirSignal) {
  const auto all = kinds();
  const std::int64_t M = 16, N = 24, K = 4224;
  const auto magnitudes = [](std::size_t n, std::uint64_t seed) {
    std::vector<float> x = gaussian(n, seed);
    for (float& v : x) v = to_float(to_bf16(std::fabs(v)));
    return x;
  };
  const std::vector<float> x = magnitudes(std::size_t(M * K), 1), w = magnitudes(std::size_t(N * K), 2);
  std::vector<double> wanted(std::size_t(M * N));
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t k = 0; k < K; ++k)
        wanted[std::size_t(m * N + n)] += double(x[std::size_t(m * K + k)]) * double(w[std::size_t(n * K + k)]);
  const Kind tensor = all[2], row = all[4], vectors = all[6], squares = all[8], mx = all[9];
  const Kind tensor5{"tensor e5m2", {.format = DType::e5m2}};
  for (const DType compute : computed_in())
    for (const auto& [ka, kb, floor_db] : {std::tuple{tensor, tensor, 27.0},
                                           {tensor5, tensor, 24.0},
                                           {row, row, 27.0},
                                           {vectors, squares, 27.0},
                                           {vectors, vectors, 27.0},
                                           {mx, mx, 27.0}}) {
      Stream stream(Device::cpu, {.gemm_compute = compute});
      const Quantized a = quantized(stream, ka, upload(stream, {M, K}, DType::bf16, x)),
                      b = quantized(stream, kb, upload(stream, {N, K}, DType::bf16, w));
      const Tensor d = stream.empty({M, N}, DType::f32, Lifetime::run);
      gemm(stream, {.a = a, .b = b, .d = d});
      EXPECT_GE(testing::sqnr_db(wanted, std::vector<float>(d.f32(), d.f32() + d.count())), floor_db) << ka.name << " x " << kb.name;
      for (std::int64_t i = 0; i < d.count(); ++i) {
        const Exact e = exact(a, b, i / N, i % N, 0, 0);
        ASSERT_NEAR(d.f32()[i], e.value, testing::dot_bound(double(K) + 8, testing::unit_f32, e.magnitude)) << ka.name << " x " << kb.name;
      }
    }
}

}  // namespace
}  // namespace octet::ops
