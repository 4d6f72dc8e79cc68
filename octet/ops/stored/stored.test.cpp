#include "octet/ops/stored/stored.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "octet/numerics/scale.hpp"
#include "octet/ops/stored/codec.math.hpp"
#include "octet/ops/stored/stored.kernels.hpp"
#include "tests/testing/code_table.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::CodeTable;

constexpr Storage all[] = {Storage::f32,  Storage::bf16,        Storage::bf16_nearest,  Storage::f16,
                           Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded, Storage::e4m3_root};
constexpr std::int64_t counts[] = {0, 1, 7, 127, 128, 129, 1000, 20011};
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr float largest = std::numeric_limits<float>::max();

Stored storage_for(Stream& s, Shape shape, Storage storage) {
  Stored out{.codes = s.zeros(shape, code_type(storage)), .scales = {}, .storage = storage};
  if (scales_tensor(storage) || scales_blocks(storage)) out.scales = s.zeros(scales_shape(storage, shape.count()), scales_type(storage));
  return out;
}

/// Values whose magnitudes spread over e^(+-2 spread), some of them 0; of one sign for a root.
std::vector<float> spread_values(std::int64_t n, std::uint64_t seed, double spread, Storage storage) {
  std::vector<float> x = testing::gaussian(std::size_t(n), seed);
  const std::vector<float> wide = testing::gaussian(std::size_t(n), seed + 1, spread);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 41 == 5 ? 0 : x[i] * std::exp(wide[i]);
    if (storage == Storage::e4m3_root) x[i] = std::fabs(x[i]);
  }
  return x;
}

struct Encoded {
  Stream stream{Device::cpu};
  Tensor values;
  Stored stored;
  Encoded(const std::vector<float>& x, Storage storage, Tiny tiny = Tiny::flush)
      : values(testing::tensor_of(stream, x, {std::int64_t(x.size())})), stored(storage_for(stream, values.shape, storage)) {
    encode_stored(stream, values, stored, tiny);
  }
  double at(std::int64_t i) const { return value_at(stored, i); }
  float expanded_k(std::int64_t block = 0) const { return stored.scales.f32()[3 * block + 1]; }
  std::vector<std::vector<std::uint8_t>> bytes() const {
    return {testing::bytes(stored.codes), stored.scales ? testing::bytes(stored.scales) : std::vector<std::uint8_t>{}};
  }
};

TEST(Stored, EveryInstructionSetAndThreadCountGivesTheSameBits) {
  for (const Storage storage : all)
    for (const std::int64_t n : counts) {
      const Encoded first(spread_values(n, 3, 2, storage), storage);
      for (auto* const kernel : testing::kernels(cpu::v3::encode_stored, cpu::v4::encode_stored))
        for (const int threads : {1, 3}) {
          const testing::WithThreads limit(threads);
          Stream s(Device::cpu);
          const Stored again = storage_for(s, {n}, storage);
          const Tensor flag = scales_tensor(storage) ? s.zeros({1}, DType::f32) : Tensor{};
          kernel({.values = first.values, .out = again, .tiny = Tiny::flush, .maximum = flag});
          EXPECT_EQ(testing::bytes(again.codes), first.bytes()[0]) << name(storage) << " " << n;
          const auto scales = again.scales ? testing::bytes(again.scales) : std::vector<std::uint8_t>{};
          EXPECT_EQ(scales, first.bytes()[1]) << name(storage) << " " << n;
        }
    }
}

TEST(Stored, DecodedValuesAreThoseOfTheHost) {
  for (const Storage storage : all)
    for (const std::int64_t n : counts)
      for (auto* const kernel : testing::kernels(cpu::v3::decode_stored, cpu::v4::decode_stored)) {
        Encoded e(spread_values(n, 5, 2, storage), storage);
        const Tensor out = e.stream.empty({n}, DType::f32);
        kernel(e.stored, out);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(out.f32()[i], value_at(e.stored, i)) << name(storage) << " " << i;
      }
}

TEST(Stored, EveryCodeHasTheBitsOfItsValueUnderEveryScaleOfABlock) {
  for (auto* const kernel : testing::kernels(cpu::v3::decode_stored, cpu::v4::decode_stored))
    for (int scale = 0; scale < 256; ++scale) {
      Stream s(Device::cpu);
      const Stored codes = storage_for(s, {256}, Storage::e4m3);
      for (int i = 0; i < 256; ++i) codes.codes.u8()[i] = std::uint8_t(i);
      std::fill_n(codes.scales.u8(), 2, std::uint8_t(scale));
      const Tensor out = s.empty({256}, DType::f32);
      kernel(codes, out);
      for (int i = 0; i < 256; ++i) {
        const float value = decode<E4M3>(std::uint8_t(i)), scaled = float(std::ldexp(double(value), scale - 127));
        if (scale == 255 || std::isnan(value)) ASSERT_TRUE(std::isnan(out.f32()[i])) << i << " " << scale;
        else ASSERT_EQ(bits_of(out.f32()[i]), bits_of(scaled)) << i << " " << scale;
        if (scale < 255 && !std::isnan(value)) ASSERT_EQ(bits_of(value_at(codes, i)), bits_of(scaled)) << i << " " << scale;
      }
    }
}

// The scale by its definition in double, and the nearest code by a search through all of them.
TEST(Stored, BlockCodesAreTheNearestUnderTheLeastPowerOfTwo) {
  const CodeTable& table = CodeTable::e4m3();
  for (const Storage storage : {Storage::e4m3, Storage::e4m3_root})
    for (const double spread : {0.0, 3.0}) {
      const std::vector<float> x = spread_values(1000, 7, spread, storage);
      const Encoded e(x, storage);
      for (std::size_t block = 0; block * 128 < x.size(); ++block) {
        const std::size_t end = std::min(x.size(), block * 128 + 128);
        const auto root = [&](float v) { return storage == Storage::e4m3_root ? double(std::sqrt(v)) : double(v); };
        double amax = 0;
        for (std::size_t i = block * 128; i < end; ++i) amax = std::max(amax, std::fabs(root(x[i])));
        int exponent = -126;
        while (std::ldexp(448.0, exponent) < amax) ++exponent;
        ASSERT_EQ(int(e.stored.scales.u8()[block]), exponent + 127) << name(storage);
        for (std::size_t i = block * 128; i < end; ++i)
          ASSERT_EQ(int(e.stored.codes.u8()[i]), int(table.encode(std::ldexp(root(x[i]), -exponent)))) << name(storage) << " " << i;
      }
    }
}

TEST(Stored, ScalesAreThoseOfTheScaleRuleAndKeepWithinItsEnds) {
  const BlockRule rule{.rule = ScaleRule::power_of_two, .format_max = E4M3::max, .overflow = 0x1p127f};
  for (const float amax : {0.0f, 448.0f, 448.001f, 447.9f, 1.0f, 0x1p-100f, 1e-34f, 1e38f})
    EXPECT_EQ(power_of_two_descale<E4M3>(amax), block_scale(amax, rule).descale) << amax;
  EXPECT_EQ(power_of_two_descale<E4M3>(0x1p-149f), 0x1p-126f) << "the least scale that is a normal number";
  for (const float amax : {0x1p-149f, 0x1p-130f, 0x1p-127f, 0x1.cp127f}) {
    const Encoded e({amax, -amax / 3}, Storage::e4m3);
    EXPECT_NEAR(e.at(0), amax, std::fmax(amax * 0x1p-4, 0x1p-136)) << amax;
    EXPECT_NEAR(e.at(1), -amax / 3, std::fmax(amax * 0x1p-4, 0x1p-136)) << amax;
  }
}

TEST(Stored, WhatNoScaleCanHoldSaturates) {
  for (const Storage storage : {Storage::f16, Storage::e4m3, Storage::e4m3_tensor}) {
    const Encoded e({largest, -largest}, storage);
    EXPECT_TRUE(std::isfinite(e.at(0)) && e.at(0) > 0x1.bp127 && e.at(1) == -e.at(0)) << name(storage);
  }
}

TEST(Stored, PerTensorScalesHoldTheMaximumAndTellIt) {
  for (const Storage storage : {Storage::f16, Storage::e4m3_tensor})
    for (const double scale : {1e-30, 1.0, 3e5, 1e30}) {
      const std::vector<float> x = testing::gaussian(20011, 3, scale);
      const Encoded e(x, storage);
      const double most = storage == Storage::f16 ? 65504 : 448, unit = storage == Storage::f16 ? 0x1p-11 : 0x1p-4;
      const float descale = e.stored.scales.f32()[0];
      double amax = 0, stored_amax = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        amax = std::max(amax, std::fabs(double(x[i]))), stored_amax = std::max(stored_amax, std::fabs(e.at(std::int64_t(i))));
        ASSERT_LE(std::fabs(e.at(std::int64_t(i)) - x[i]),
                  std::max(unit * std::fabs(x[i]), descale * (storage == Storage::f16 ? 0x1p-25 : 0x1p-10)));
      }
      int exponent = 0;
      EXPECT_EQ(std::frexp(descale, &exponent), 0.5);
      EXPECT_LE(amax, most * descale);
      EXPECT_GT(amax, most * descale / 2) << "the least such power of two";
      EXPECT_EQ(e.stored.scales.f32()[1], stored_amax);
    }
}

// Independent: COAT's definition in double.
TEST(Stored, ExpandedCodesFollowTheirDefinition) {
  const CodeTable& table = CodeTable::e4m3();
  for (const double spread : {0.01, 1.0, 2.0}) {
    const std::vector<float> x = spread_values(1000, 9, spread, Storage::e4m3_expanded);
    const Encoded e(x, Storage::e4m3_expanded);
    for (std::size_t block = 0; block * 128 < x.size(); ++block) {
      double most = 0, least = HUGE_VAL;
      for (std::size_t i = block * 128; i < std::min(x.size(), block * 128 + 128); ++i)
        if (x[i] != 0) most = std::max(most, std::fabs(double(x[i]))), least = std::min(least, std::fabs(double(x[i])));
      least = std::max(least, most / (448.0 * 448 / 2));
      const double k = std::floor(16 * std::min(64.0, std::log2(448.0 * 448 / 2) / std::log2(most / least))) / 16;
      ASSERT_NEAR(e.expanded_k(std::int64_t(block)), k, 1.0 / 16) << "a quotient next to a multiple of 1 / 16 may differ in the last bit";
      const double used = e.expanded_k(std::int64_t(block)), g = std::sqrt(most * least), d = std::pow(most / g, used) / 448;
      for (std::size_t i = block * 128; i < std::min(x.size(), block * 128 + 128); ++i) {
        const double wanted = std::copysign(std::pow(std::fabs(double(x[i])) / g, used) / d, x[i]);
        const double nearest = std::fabs(table.decode(table.encode(wanted)) - wanted);
        const double got = std::fabs(table.decode(e.stored.codes.u8()[i]) - wanted);
        ASSERT_LE(got, nearest + 0x1p-13 * std::fabs(wanted)) << i << ": the powers' error may choose the other of two near neighbours";
        const double step = std::fmax(0x1p-4, 0x1p-10 / std::fabs(wanted)) + 0x1p-11;  // of a code, half of it, relative
        if (std::fabs(x[i]) >= least) {
          ASSERT_NEAR(e.at(std::int64_t(i)), x[i], (1 - std::pow(1 - step, 1 / used)) * std::fabs(x[i])) << "rounded down it is more";
        }
      }
    }
  }
}

// The published kernel starts its minimum at element 0, which may be 0: k then falls from about 1.9 to 0.19.
TEST(Stored, AZeroAnywhereLeavesTheExpansionOfTheOthers) {
  std::vector<float> x = testing::gaussian(128, 3);
  for (float& v : x) v = std::copysign(std::fmax(std::fabs(v), 1e-2f), v);
  for (const std::size_t at : {0u, 1u, 64u, 127u}) {
    std::vector<float> without = x, with = x;
    without[at] = x[(at + 1) % 128], with[at] = 0;
    const Encoded a(without, Storage::e4m3_expanded), b(with, Storage::e4m3_expanded);
    EXPECT_EQ(a.expanded_k(), b.expanded_k());
    EXPECT_GT(b.expanded_k(), 1.5f);
    EXPECT_EQ(b.at(std::int64_t(at)), 0);
    for (std::size_t i = 0; i < 128; ++i)
      if (i != at) {
        EXPECT_EQ(a.at(std::int64_t(i)), b.at(std::int64_t(i)));
      }
  }
}

// With k < 1 the 127 others would share the few codes of a compressed range.
TEST(Stored, OneTinyValueDoesNotCompressTheOthers) {
  std::vector<float> x = testing::gaussian(128, 5);
  for (float& v : x) v = std::copysign(std::fmax(std::fabs(v), 1e-2f), v);
  x[17] = 1e-30f;
  const Encoded e(x, Storage::e4m3_expanded), kept(x, Storage::e4m3_expanded, Tiny::keep);
  EXPECT_EQ(e.expanded_k(), 1);
  EXPECT_EQ(kept.expanded_k(), 0.5f) << "a second moment's range is twice as wide";
  EXPECT_EQ(e.at(17), 0);
  EXPECT_GT(kept.at(17), 0);
  for (std::int64_t i = 0; i < 128; ++i)
    if (i != 17) {
      ASSERT_NEAR(e.at(i), x[std::size_t(i)], (0x1p-4 + 0x1p-11) * std::fabs(x[std::size_t(i)])) << i;
    }
}

TEST(Stored, ABlockOfOneMagnitudeIsAlmostExactWhenExpanded) {
  for (const float size : {1.0f, 0.3f, 1e-20f, 1e20f}) {
    std::vector<float> x(128, size);
    for (std::size_t i = 0; i < 128; i += 3) x[i] = -size;
    const Encoded e(x, Storage::e4m3_expanded), one({size}, Storage::e4m3_expanded);
    for (std::int64_t i = 0; i < 128; ++i) ASSERT_NEAR(e.at(i), x[std::size_t(i)], size * 0x1p-9);
    EXPECT_NEAR(one.at(0), size, size * 0x1p-9);
  }
}

TEST(Stored, ExtremeBlocksHaveFiniteScalars) {
  for (const float size : {0x1p-149f, 1e-40f, 1e-38f, 1e30f, largest})
    for (const float other : {0x1p-149f, 1.0f, largest}) {
      const Encoded e({size, other}, Storage::e4m3_expanded);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnormal(e.stored.scales.f32()[i])) << size << " " << other << " " << i;
      EXPECT_TRUE(std::isfinite(e.at(0)) && std::isfinite(e.at(1))) << size << " " << other;
    }
}

TEST(Stored, ASecondMomentOtherThanZeroIsNeverStoredAsZero) {
  for (const Storage storage : {Storage::f16, Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded, Storage::e4m3_root}) {
    const std::vector<float> x{1, 1e-30f, 0, 0x1p-149f, 1e-9f};
    const Encoded kept(x, storage, Tiny::keep), flushed(x, storage);
    for (const int i : {1, 3, 4}) EXPECT_GT(kept.at(i), 0) << name(storage) << " " << i;
    EXPECT_EQ(kept.at(2), 0) << name(storage);
    EXPECT_EQ(flushed.at(1), 0) << name(storage);
  }
}

TEST(Stored, ZerosAreExactAndBitsZeroDecodeToZero) {
  for (const Storage storage : all)
    for (const std::int64_t n : counts) {
      const Encoded e(std::vector<float>(std::size_t(n), 0.0f), storage, Tiny::keep);
      Stream s(Device::cpu);
      const Stored fresh = storage_for(s, {n}, storage);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_TRUE(e.at(i) == 0 && value_at(fresh, i) == 0) << name(storage);
    }
}

TEST(Stored, WhatIsNotFiniteIsShownAndLeavesTheOthers) {
  for (const Storage storage : {Storage::f16, Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded, Storage::e4m3_root}) {
    const std::vector<float> x = spread_values(300, 11, 1, Storage::e4m3_root);
    std::vector<float> broken = x;
    broken[3] = infinity, broken[200] = nan;
    const Encoded good(x, storage), bad(broken, storage);
    EXPECT_FALSE(std::isfinite(bad.at(3))) << name(storage);
    EXPECT_TRUE(std::isnan(bad.at(200))) << name(storage);
    for (const std::int64_t i : {0, 4, 199, 299}) EXPECT_EQ(bad.at(i), good.at(i)) << name(storage);
  }
}

// Scales are powers of two, so values that are codes already stay.
TEST(Stored, StoredValuesAreStoredAgainUnchanged) {
  for (const Storage storage : all) {
    if (storage == Storage::e4m3_expanded) continue;  // its scales are no powers of two
    const Encoded first(spread_values(1000, 13, 2, storage), storage);
    std::vector<float> decoded(1000);
    for (std::int64_t i = 0; i < 1000; ++i) decoded[std::size_t(i)] = value_at(first.stored, i);
    const Encoded again(decoded, storage);
    for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(again.at(i), first.at(i)) << name(storage) << " " << i;
  }
}

TEST(Stored, DryRunNeedsTheSameMemory) {
  for (const Storage storage : all)
    testing::expect_dry_run_agrees([&](Stream& s) {
      const Stored x = storage_for(s, {5, 33}, storage);
      const Tensor values = s.zeros({5, 33}, DType::f32);
      encode_stored(s, values, x), decode_stored(s, x, values);
    });
}

TEST(Stored, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor values = s.empty({200}, DType::f32);
  Stored good = storage_for(s, {200}, Storage::e4m3), few = good, wide = good, other = storage_for(s, {100}, Storage::e4m3);
  few.scales = s.empty({1}, DType::e8m0), wide.codes = values;
  for (const Stored& wrong : {few, wide, other}) {
    EXPECT_THROW(encode_stored(s, values, wrong), ContractError);
    EXPECT_THROW(decode_stored(s, wrong, values), ContractError);
  }
  EXPECT_THROW(decode_stored(s, good, s.empty({200}, DType::bf16)), ContractError);
  EXPECT_THROW(value_at(good, 200), ContractError);
}

}  // namespace
}  // namespace octet::ops
