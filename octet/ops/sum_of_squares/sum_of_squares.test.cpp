#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/stored/stored.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr std::int64_t counts[] = {0, 1, 7, 16, 33, 16383, 16384, 16385, 100003};

double sum(Stream& s, const Tensor& x) {
  const Tensor out = s.empty({1}, DType::f64);
  sum_of_squares(s, x, out);
  return *out.as<double>();
}

TEST(SumOfSquares, IsWithinItsErrorBound) {
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const Tensor x = gaussian_tensor(s, {n}, 1, DType::f32, 1e-4);
    long double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) exact += (long double)x.f32()[i] * x.f32()[i];
    EXPECT_NEAR(sum(s, x), double(exact), testing::dot_bound(16384 / 16 + 4 + double(n) / 16384, 0x1p-53, double(exact))) << n;
  }
}

TEST(SumOfSquares, EveryThreadCountAndInstructionSetGivesTheSameBits) {
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {100003}, 1);
  const double first = sum(s, x);
  for (const int threads : {1, 2, 3, 5}) {
    const testing::WithThreads limit(threads);
    EXPECT_EQ(sum(s, x), first) << threads;
  }
  for (const std::int64_t n : counts) {
    std::vector<double> results;
    for (auto* const kernel : testing::kernels(cpu::v3::sum_of_squares, cpu::v4::sum_of_squares)) {
      const SumPiece piece{view_of(Stored::plain(x)), 0, n};
      float most;
      kernel(&piece, 1, &results.emplace_back(), &most);
    }
    EXPECT_EQ(results.front(), results.back()) << n;
  }
}

TEST(SumOfSquares, ManyTensorsHaveTheirOwnSumsAndATotal) {
  Stream s(Device::cpu);
  std::vector<Stored> x;
  for (const std::int64_t n : counts) x.push_back(Stored::plain(gaussian_tensor(s, {n}, std::uint64_t(n))));
  const Tensor sums = s.empty({std::int64_t(x.size())}, DType::f64), total = s.empty({1}, DType::f64);
  sum_of_squares(s, {.x = x, .sums = sums, .total = total});
  double in_order = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(sums.as<double>()[i], sum(s, x[i].codes)) << i;
    in_order += sums.as<double>()[i];
  }
  EXPECT_EQ(*total.as<double>(), in_order);
  const double first = sums.as<double>()[5];
  sum_of_squares(s, {.x = x, .sums = sums, .total = total, .accumulate = true});
  EXPECT_EQ(*total.as<double>(), 2 * in_order);
  EXPECT_EQ(sums.as<double>()[5], 2 * first);
}

// Of each storage, as of the f32 values that its codes hold.
TEST(SumOfSquares, OfCodesIsThatOfTheirValues) {
  Stream s(Device::cpu);
  constexpr std::int64_t n = 20000;
  const Tensor x = gaussian_tensor(s, {n}, 1, DType::f32, 1e-3);
  for (std::int64_t i = 0; i < n; ++i) x.f32()[i] = std::fabs(x.f32()[i]);
  for (const Storage storage : {Storage::bf16, Storage::bf16_nearest, Storage::e4m3, Storage::e4m3_expanded, Storage::e4m3_root}) {
    Stored codes{.codes = s.empty({n}, code_type(storage)), .storage = storage};
    if (scales_blocks(storage)) codes.scales = s.empty(scales_shape(storage, n), scales_type(storage));
    encode_stored(s, x, codes);
    const Tensor values = s.empty({n}, DType::f32), squares = s.empty({1}, DType::f64);
    decode_stored(s, codes, values);
    sum_of_squares(s, {.x = std::span(&codes, 1), .sums = squares});
    EXPECT_EQ(*squares.as<double>(), sum(s, values)) << name(storage);
    EXPECT_GT(*squares.as<double>(), 0) << name(storage);
  }
}

TEST(SumOfSquares, AnEmptyListHasTotalZero) {
  Stream s(Device::cpu);
  const Tensor total = testing::tensor_of(s, {1, 1}, {2});
  const Tensor out{total.data, {1}, DType::f64};
  sum_of_squares(s, {.x = {}, .sums = s.empty({0}, DType::f64), .total = out});
  EXPECT_EQ(*out.as<double>(), 0);
}

TEST(SumOfSquares, LargeAndTinyValuesNeitherOverflowNorVanish) {
  Stream s(Device::cpu);
  EXPECT_EQ(sum(s, testing::tensor_of(s, {0x1p100f, 0x1p100f}, {2})), 0x1p201);
  EXPECT_EQ(sum(s, testing::tensor_of(s, {0x1p-149f}, {1})), 0x1p-298);
}

TEST(SumOfSquares, InfinityAndNanGoThrough) {
  Stream s(Device::cpu);
  for (const std::int64_t at : {0, 40, 20000}) {
    const Tensor x = gaussian_tensor(s, {20001}, 1);
    x.f32()[at] = -INFINITY;
    EXPECT_EQ(sum(s, x), double(INFINITY));
    x.f32()[at] = NAN;
    EXPECT_TRUE(std::isnan(sum(s, x)));
  }
}

TEST(SumOfSquares, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const Stored x[] = {Stored::plain(gaussian_tensor(s, {100003}, 1)), Stored::plain(gaussian_tensor(s, {3, 5}, 2))};
    sum_of_squares(s, {.x = x, .sums = s.zeros({2}, DType::f64), .total = s.zeros({1}, DType::f64)});
  });
}

TEST(SumOfSquares, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor x = s.empty({4}, DType::f32), half = s.empty({4}, DType::f16), sum = s.empty({1}, DType::f64);
  EXPECT_THROW(sum_of_squares(s, half, sum), ContractError);
  EXPECT_THROW(sum_of_squares(s, x, x), ContractError);
  const Stored plain = Stored::plain(x);
  EXPECT_THROW(sum_of_squares(s, {.x = std::span(&plain, 1), .sums = s.empty({2}, DType::f64)}), ContractError);
  EXPECT_THROW(sum_of_squares(s, {.x = std::span(&plain, 1), .sums = sum, .total = x}), ContractError);
  EXPECT_THROW(sum_of_squares(s, {.x = std::span(&plain, 1), .sums = sum, .maxima = sum}), ContractError);
}

}  // namespace
}  // namespace octet::ops
