#include "octet/ops/accumulate/accumulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "octet/numerics/drawn.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.kernels.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t counts[] = {1, 7, 127, 128, 129, 1000, 4096, 4097, 20011};
constexpr Storage storages[] = {Storage::e4m3, Storage::e4m3_tensor};

/// A gradient in 8 bits, whose storage is poisoned before the first micro-batch.
struct Sum {
  Sum(Stream& stream, std::int64_t count, Storage storage, std::uint64_t key = 5, std::int64_t update = 3)
      : stream(stream), key(key), numbers{0, update} {
    sum = {.codes = stream.empty({count}, DType::e4m3, Lifetime::run),
           .scales = stream.empty(scales_shape(storage, count), scales_type(storage), Lifetime::run),
           .storage = storage};
    std::fill_n(sum.codes.u8(), sum.codes.bytes(), 0x7F);
    std::fill_n(sum.scales.u8(), sum.scales.bytes(), 0xFF);
  }
  void add(const Tensor& x) {
    accumulate(stream, {.x = x, .sum = sum, .draws = {numbers, {2}, DType::i64}, .key = key});
    ++numbers[accumulate_part];
  }
  /// The same, rounded to nearest even.
  void add_nearest(const Tensor& x) {
    const Scope scope(stream);
    const Tensor values = stream.zeros(x.shape, DType::f32);
    if (numbers[accumulate_part]++ > 0) decode_stored(stream, sum, values);
    for (std::int64_t i = 0; i < x.count(); ++i) values.f32()[i] += octet::value_at(x, i);
    encode_stored(stream, values, sum);
  }
  float at(std::int64_t i) const { return value_at(sum, i); }
  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> out = testing::bytes(sum.codes), scales = testing::bytes(sum.scales);
    out.insert(out.end(), scales.begin(), scales.end());
    return out;
  }

  Stream& stream;
  std::uint64_t key;
  std::int64_t numbers[2];
  Stored sum;
};

/// The numbers of E4M3 times d around x, found among all of them.
struct Neighbours {
  double below = -INFINITY, above = INFINITY;
  Neighbours(double x, double d) {
    for (int code = 0; code < 256; ++code) {
      const double v = double(decode<E4M3>(std::uint8_t(code))) * d;
      if (v <= x) below = std::max(below, v);
      if (v >= x) above = std::min(above, v);
    }
  }
};
/// The least power of two under which 448 reaches the largest of x[begin .. end).
double least_descale(const std::vector<double>& x, std::size_t begin, std::size_t end) {
  double most = 0;
  for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(x[i]));
  return most == 0 ? 1 : std::exp2(std::ceil(std::log2(most / 448)));
}

TEST(Accumulate, StoresOneOfTheTwoCodesAroundEachSumWithTheScaleOfTheSumsMaximum) {
  for (const Storage storage : storages)
    for (const DType type : {DType::f32, DType::bf16})
      for (const std::int64_t n : counts) {
        Stream s(Device::cpu);
        Sum sum(s, n, storage);
        for (int part = 0; part < 3; ++part) {
          const Tensor x = testing::gaussian_tensor(s, {n}, std::uint64_t(10 + part), type, 1e-3);
          std::vector<double> exact(static_cast<std::size_t>(n));
          for (std::int64_t i = 0; i < n; ++i) exact[std::size_t(i)] = (part > 0 ? sum.at(i) : 0) + octet::value_at(x, i);
          sum.add(x);
          const std::size_t block = storage == Storage::e4m3 ? 128 : exact.size();
          for (std::size_t begin = 0; begin < exact.size(); begin += block) {
            const std::size_t end = std::min(begin + block, exact.size());
            const double d = least_descale(exact, begin, end);
            for (std::size_t i = begin; i < end; ++i) {
              const Neighbours near(exact[i], d);
              const double got = sum.at(std::int64_t(i));
              // The sum is f32: at a code's edge its rounding may lead to the next one.
              const double slack = 0x1p-23 * std::fabs(exact[i]);
              ASSERT_TRUE(got >= near.below - slack && got <= near.above + slack)
                  << to_text(storage) << " " << n << " " << part << " " << i;
              ASSERT_TRUE(std::fabs(got - near.below) <= slack || std::fabs(got - near.above) <= slack) << i;
              if (storage == Storage::e4m3_tensor) {
                ASSERT_LE(std::fabs(got - exact[i]), std::min(exact[i] - near.below, near.above - exact[i]) + slack) << i;
              }
            }
          }
        }
      }
}

TEST(Accumulate, AddingZerosChangesNoBit) {
  for (const Storage storage : storages) {
    Stream s(Device::cpu);
    Sum sum(s, 1000, storage);
    sum.add(testing::gaussian_tensor(s, {1000}, 1));
    const auto before = sum.bytes();
    for (int part = 1; part < 20; ++part) sum.add(s.zeros({1000}, DType::f32));
    EXPECT_EQ(sum.bytes(), before) << to_text(storage);
  }
}

TEST(Accumulate, OfAnAllZeroGradientIsZero) {
  for (const Storage storage : storages) {
    Stream s(Device::cpu);
    Sum sum(s, 300, storage);
    for (int part = 0; part < 3; ++part) sum.add(s.zeros({300}, DType::f32));
    for (std::int64_t i = 0; i < 300; ++i) ASSERT_EQ(sum.at(i), 0) << to_text(storage);
  }
}

TEST(Accumulate, EveryThreadCountAndInstructionSetGivesTheSameBits) {
  for (const Storage storage : storages)
    for (const DType type : {DType::f32, DType::bf16}) {
      Stream s(Device::cpu);
      std::vector<std::vector<std::uint8_t>> found;
      const auto run = [&](const std::function<void(const Accumulate&)>& add) {
        Sum sum(s, 20011, storage);
        for (int part = 0; part < 3; ++part, ++sum.numbers[accumulate_part])
          add({.x = testing::gaussian_tensor(s, {20011}, std::uint64_t(part), type),
               .sum = sum.sum,
               .draws = {sum.numbers, {2}, DType::i64},
               .key = 9});
        found.push_back(sum.bytes());
      };
      for (const int threads : {1, 2, 3}) {
        const testing::WithThreads limit(threads);
        run([&](const Accumulate& a) { accumulate(s, a); });
      }
      for (auto* const kernel : testing::kernels(cpu::v3::accumulate_blocks, cpu::v4::accumulate_blocks))
        if (storage == Storage::e4m3) run(kernel);
      const Tensor maxima = s.empty({1 + 5}, DType::f32, Lifetime::run);
      for (auto* const kernel : testing::kernels(cpu::v3::accumulate_tensor, cpu::v4::accumulate_tensor))
        if (storage == Storage::e4m3_tensor) run([&](const Accumulate& a) { kernel(a, maxima); });
      for (const auto& bytes : found) EXPECT_EQ(bytes, found.front()) << to_text(storage);
    }
}

// Codes under their block's scale: normal and subnormal ones, those below every code, zeros and what is not finite. Every fourth value is
// the least subnormal one that its draw raises to the next code, and the one after it is just below its own.
TEST(Accumulate, ValuesOfEverySizeHaveTheCodesOfTheirDraws) {
  constexpr std::int64_t n = 128 * 64;
  constexpr std::uint64_t key = 9, update = 3;
  const auto draw = [](std::int64_t i) {
    return std::int32_t(philox(key, std::uint64_t(i / 8), update << 24).w[i % 8 / 2] >> (i % 2 * 16) & 0xFFFF);
  };
  for (auto* const kernel : testing::kernels(cpu::v3::accumulate_blocks, cpu::v4::accumulate_blocks)) {
    Stream s(Device::cpu);
    Sum sum(s, n, Storage::e4m3, key, update);
    const Tensor x = testing::gaussian_tensor(s, {n}, 4);
    const std::vector<float> wide = testing::gaussian(n, 5, 6);
    for (std::int64_t i = 0; i < n; ++i) x.f32()[i] *= std::exp(wide[std::size_t(i)]);
    for (std::int64_t i = 0; i < n; i += 128) x.f32()[i] = 448, x.f32()[i + 1] = -0.0f;
    for (std::int64_t i = 0; i < n; ++i) x.f32()[i] = std::fmin(std::fmax(x.f32()[i], -448.0f), 448.0f);  // so every scale is 1
    for (std::int64_t i = 2; i < n; i += i % 4 == 2 ? 1 : 3) {
      const float raised = float(i / 4 % 8 * 65536 + 65536 - draw(i)) * 0x1p-25f;
      x.f32()[i] = i % 4 == 2 ? raised : -std::nextafter(raised, 0.0f);
    }
    x.f32()[300] = NAN, x.f32()[400] = -INFINITY;
    kernel({.x = x, .sum = sum.sum, .draws = {sum.numbers, {2}, DType::i64}, .key = key});
    for (std::int64_t i = 0; i < n; ++i) {
      const float value = std::isfinite(x.f32()[i]) ? x.f32()[i] : NAN;
      ASSERT_EQ(int(sum.sum.codes.u8()[i]), int(encode_drawn_lanes<E4M3>(value, draw(i)))) << i << " " << value;
    }
  }
}

TEST(Accumulate, DrawsFollowFromParameterUpdateAndMicroBatch) {
  Stream s(Device::cpu);
  const Tensor first = testing::gaussian_tensor(s, {4096}, 1), second = testing::gaussian_tensor(s, {4096}, 2);
  const auto codes = [&](std::uint64_t key, std::int64_t update, std::int64_t part) {
    Sum sum(s, 4096, Storage::e4m3, key, update);
    sum.add(first);
    sum.numbers[accumulate_part] = part;
    sum.add(second);
    return sum.bytes();
  };
  const auto one = codes(1, 1, 1);
  EXPECT_EQ(codes(1, 1, 1), one);
  EXPECT_NE(codes(2, 1, 1), one);
  EXPECT_NE(codes(1, 2, 1), one);
  EXPECT_NE(codes(1, 1, 2), one);
}

// What one bad value does: itself NaN, its block's others as without it, and the norm not a number.
TEST(Accumulate, InfinityAndNanAndOverflowBecomeNanAndMakeTheNormNan) {
  for (const Storage storage : storages)
    for (const float bad : {INFINITY, -INFINITY, NAN, 3.4e38f}) {
      Stream s(Device::cpu);
      Sum sum(s, 1000, storage), without(s, 1000, storage);
      const bool overflows = std::isfinite(bad);
      for (int part = 0; part < 3; ++part) {
        const Tensor x = testing::gaussian_tensor(s, {1000}, std::uint64_t(part), DType::f32, overflows ? 1e38 / 8 : 1.0);
        x.f32()[200] = 0;
        without.add(x);
        if (part < 2) x.f32()[200] = bad;
        if (overflows && part == 0) x.f32()[200] = 0x1p127f;
        sum.add(x);
      }
      EXPECT_TRUE(std::isnan(sum.at(200))) << to_text(storage) << " " << bad;
      for (std::int64_t i = 0; i < 1000; ++i) {
        const bool compared = !overflows && i != 200;
        ASSERT_TRUE(!compared || sum.at(i) == without.at(i)) << i;
      }
      const Tensor squares = s.empty({1}, DType::f64);
      sum_of_squares(s, {.x = std::span(&sum.sum, 1), .sums = squares});
      EXPECT_TRUE(std::isnan(*squares.as<double>()));
      sum.numbers[accumulate_part] = 0;  // the next step stores over it
      sum.add(s.zeros({1000}, DType::f32));
      EXPECT_EQ(sum.at(200), 0);
    }
}

/// Sums of 64 micro-batches against f64: root mean square and mean of the errors as shares of the sums' root mean square, and the bounds of
/// stochastic rounding. A sum S_k + e_k between two codes moves to one of them: mean 0, variance at most a quarter of the squared spacing,
/// which is at most |S_k + e_k| / 8, or 2^-9 of the descale where codes are subnormal. Variances add up.
struct SumError {
  double rms = 0, bias = 0, rms_bound = 0, bias_bound = 0;
};
SumError error_of_64(double coherent, bool stochastic, Storage storage = Storage::e4m3) {
  constexpr std::size_t n = 64 * 128;
  Stream s(Device::cpu);
  Sum sum(s, n, storage);
  std::vector<double> exact(n, 0.0), variance(n, 0.0);
  for (int part = 0; part < 64; ++part) {
    const Scope scope(s);
    const std::vector<float> same = testing::gaussian(n, 1, 1e-3 * coherent),
                             other = testing::gaussian(n, std::uint64_t(2 + part), 1e-3 * std::sqrt(1 - coherent * coherent));
    std::vector<float> x = same;
    for (std::size_t i = 0; i < n; ++i) x[i] += other[i];
    const Tensor tensor = testing::tensor_of(s, x, {n});
    if (stochastic) sum.add(tensor);
    else sum.add_nearest(tensor);
    for (std::size_t i = 0; i < n; ++i) exact[i] += double(x[i]);
    for (std::size_t begin = 0; begin < n; begin += 128) {
      const double least = 0x1p-9 * 2 * least_descale(exact, begin, begin + 128);  // the scale may be one higher than that of exact sums
      for (std::size_t i = begin; i < begin + 128; ++i) variance[i] += ((exact[i] * exact[i] + variance[i]) / 64 + least * least) / 4;
    }
  }
  SumError out;
  double size = 0, sign = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double e = sum.at(std::int64_t(i)) - exact[i];
    size += exact[i] * exact[i], out.rms += e * e, out.rms_bound += variance[i];
    sign += std::fabs(exact[i]), out.bias += std::copysign(1.0, exact[i]) * e;  // above 0: away from 0
  }
  out.bias /= sign;
  out.bias_bound = 5 * std::sqrt(out.rms_bound) / sign;  // five standard deviations of a sum of independent errors
  out.rms = std::sqrt(out.rms / size), out.rms_bound = std::sqrt(out.rms_bound / size);
  return out;
}

// `coherent`: the share of a micro-batch's gradient, by its root mean square, that is the same in all micro-batches.
TEST(Accumulate, SumsOf64MicroBatchesAreWithinTheBoundsOfStochasticRoundingAndHaveNoBias) {
  for (const double coherent : {0.0, 0.3, 1.0}) {
    const SumError e = error_of_64(coherent, true);
    std::printf("64 micro-batches, coherent %.1f, stochastic: rms error %.3f (bound %.3f), bias %+.4f (bound %.4f)\n", coherent, e.rms,
                e.rms_bound, e.bias, e.bias_bound);
    EXPECT_LE(e.rms, e.rms_bound);
    EXPECT_LE(std::fabs(e.bias), e.bias_bound);
    EXPECT_LT(e.rms_bound, 0.38);
    EXPECT_LT(e.bias_bound, 0.027);
  }
}

// The trap: from the sixteenth to the thirty-second addend on, each is half of the spacing or less.
TEST(Accumulate, NearestEvenStopsSumsOf64EqualMicroBatchesAtAQuarterToAHalf) {
  for (const Storage storage : storages) {
    for (const double coherent : {0.0, 0.3}) {
      const SumError e = error_of_64(coherent, false, storage);
      std::printf("64 micro-batches, coherent %.1f, nearest even, %s: rms error %.3f, bias %+.4f\n", coherent, name(storage).data(), e.rms,
                  e.bias);
    }
    const SumError equal = error_of_64(1, false, storage);
    std::printf("64 micro-batches, coherent 1.0, nearest even, %s: rms error %.3f, bias %+.4f\n", name(storage).data(), equal.rms,
                equal.bias);
    EXPECT_LT(equal.bias, -0.5);
    EXPECT_GT(equal.bias, -0.75);
  }
}

TEST(Accumulate, DryRunNeedsTheSameMemory) {
  for (const Storage storage : storages)
    testing::expect_dry_run_agrees([&](Stream& s) {
      const Stored sum{.codes = s.zeros({5, 1000}, DType::e4m3),
                       .scales = s.zeros(scales_shape(storage, 5000), scales_type(storage)),
                       .storage = storage};
      accumulate(s, {.x = testing::gaussian_tensor(s, {5, 1000}, 1), .sum = sum, .draws = s.zeros({2}, DType::i64)});
    });
}

TEST(Accumulate, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor x = s.empty({300}, DType::f32), draws = s.empty({2}, DType::i64), codes = s.empty({300}, DType::e4m3),
               scales = s.empty({3}, DType::e8m0);
  const Stored sum{.codes = codes, .scales = scales, .storage = Storage::e4m3};
  accumulate(s, {.x = x, .sum = sum, .draws = draws});
  EXPECT_THROW(accumulate(s, {.x = s.empty({299}, DType::f32), .sum = sum, .draws = draws}), ContractError);
  EXPECT_THROW(accumulate(s, {.x = codes, .sum = sum, .draws = draws}), ContractError);
  EXPECT_THROW(accumulate(s, {.x = x, .sum = sum, .draws = x}), ContractError);
  EXPECT_THROW(accumulate(s, {.x = x, .sum = Stored::plain(x), .draws = draws}), ContractError);
  EXPECT_THROW(accumulate(s, {.x = x, .sum = {.codes = codes, .scales = x, .storage = Storage::e4m3}, .draws = draws}), ContractError);
  EXPECT_THROW(accumulate(s, {.x = x, .sum = {.codes = codes, .scales = scales, .storage = Storage::e4m3_root}, .draws = draws}),
               ContractError);
}

}  // namespace
}  // namespace octet::ops
