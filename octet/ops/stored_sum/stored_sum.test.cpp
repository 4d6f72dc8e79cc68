#include "octet/ops/stored_sum/stored_sum.hpp"

#include <gtest/gtest.h>

#include "octet/ops/stored_sum/stored_sum.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

Stored empty(Stream& s, Storage storage, std::int64_t n) {
  Stored x{.codes = s.empty({n}, code_type(storage), Lifetime::run), .scales = {}, .storage = storage};
  if (scales_blocks(storage) || scales_tensor(storage)) x.scales = s.empty(scales_shape(storage, n), scales_type(storage), Lifetime::run);
  return x;
}
Stored filled(Stream& s, Storage storage, std::int64_t n, std::uint64_t seed, double scale = 1) {
  const Stored x = empty(s, storage, n);
  const Tensor values = testing::gaussian_tensor(s, {n}, seed, DType::f32, scale);
  if (storage == Storage::bf16) {
    for (std::int64_t i = 0; i < n; ++i) x.codes.bf16()[i] = to_bf16(values.f32()[i]);
    return x;
  }
  encode_stored(s, values, x);
  return x;
}

// Each part decoded alone by another op, added by a plain loop, encoded by another op.
TEST(StoredSum, IsTheSumOfDecodedPartsInOrder) {
  for (const Storage in : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor})
    for (const Storage out : {Storage::f32, Storage::e4m3})
      for (const std::int64_t n : {128, 384, 4096})
        for (const int parts : {1, 2, 5}) {
          Stream s(Device::cpu);
          const Stored x = filled(s, in, parts * n, 7);
          const Tensor wanted = s.zeros({n}, DType::f32);
          for (int r = 0; r < parts; ++r)
            for (std::int64_t i = 0; i < n; ++i) wanted.f32()[i] = r == 0 ? value_at(x, i) : wanted.f32()[i] + value_at(x, r * n + i);
          const Stored codes = empty(s, out, n), sum = empty(s, out, n);
          encode_stored(s, wanted, codes);
          stored_sum(s, {.parts = x, .sum = sum});
          EXPECT_EQ(testing::bytes(sum.codes), testing::bytes(codes.codes)) << name(in) << " " << name(out) << " " << n << " " << parts;
          if (out != Storage::e4m3) continue;
          EXPECT_EQ(testing::bytes(sum.scales), testing::bytes(codes.scales));
        }
}

// The same addition of values by a plain loop: parts one after the other, parts anywhere, and what the sum has before them.
TEST(StoredSum, AddsPartsAnywhereToWhatItHas) {
  for (const Storage in : {Storage::f32, Storage::bf16, Storage::e4m3})
    for (const Storage out : {Storage::f32, Storage::bf16})
      for (const bool adds : {false, true})
        for (const std::size_t parts : {1, 2, 16}) {
          Stream s(Device::cpu);
          constexpr std::int64_t n = 1024;
          std::vector<Stored> all;
          for (std::size_t r = 0; r < parts; ++r) all.push_back(filled(s, in, n, 10 + r));
          const Stored sum = filled(s, out, n, 3);
          std::vector<float> wanted(n);
          for (std::int64_t i = 0; i < n; ++i) {
            float& w = wanted[std::size_t(i)];
            if (adds) w = value_at(sum, i);
            for (std::size_t r = 0; r < parts; ++r) w = r == 0 && !adds ? value_at(all[r], i) : w + value_at(all[r], i);
            if (out == Storage::bf16) w = to_float(to_bf16(w));
          }
          stored_sum(s, {.parts = all[0], .sum = sum, .more = std::span(all).subspan(1), .adds = adds});
          for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(value_at(sum, i), wanted[std::size_t(i)]) << name(in) << name(out) << i;
        }
}

TEST(StoredSum, ConvertsAnyCountOfOnePart) {
  for (const std::int64_t n : {0, 1, 7, 127, 129, 5000}) {
    Stream s(Device::cpu);
    const Stored x = filled(s, Storage::bf16, n, 3), codes = empty(s, Storage::e4m3, n), back = empty(s, Storage::f32, n);
    stored_sum(s, {.parts = x, .sum = codes});
    stored_sum(s, {.parts = codes, .sum = back});
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(back.codes.f32()[i], value_at(codes, i)) << i;
  }
}

TEST(StoredSum, ASharedScaleSaturatesAndCounts) {
  Stream s(Device::cpu);
  const float most = E4M3::max, least = E4M3::min_subnormal;
  std::vector<float> values(256);
  values[0] = values[128] = most, values[1] = 1, values[129] = -1, values[2] = least / 2, values[130] = least / 8;
  const Stored parts = Stored::plain(testing::tensor_of(s, values, {256}));
  const Stored sum = empty(s, Storage::e4m3_tensor, 128);
  sum.scales.f32()[0] = 0.5f;
  const Tensor counts = s.zeros({2}, DType::i64);
  stored_sum(s, {.parts = parts, .sum = sum, .counts = counts});
  EXPECT_EQ(value_at(sum, 0), most / 2) << "saturated";
  EXPECT_EQ(value_at(sum, 1), 0);
  EXPECT_EQ(value_at(sum, 2), least / 2) << "1.25 least codes";
  EXPECT_EQ(counts.as<std::int64_t>()[0], 1);
  EXPECT_EQ(counts.as<std::int64_t>()[1], 0);
  sum.scales.f32()[0] = 4;
  stored_sum(s, {.parts = parts, .sum = sum, .counts = counts});
  EXPECT_EQ(value_at(sum, 0), 2 * most / 4 * 4) << "fits exactly";
  EXPECT_EQ(value_at(sum, 2), 0) << "flushed";
  EXPECT_EQ(counts.as<std::int64_t>()[0], 1);
  EXPECT_EQ(counts.as<std::int64_t>()[1], 1);
}

TEST(StoredSum, NanAndInfinityBecomeNan) {
  Stream s(Device::cpu);
  for (const float bad : {float(INFINITY), float(-INFINITY), float(NAN)})
    for (const Storage out : {Storage::e4m3, Storage::e4m3_tensor}) {
      const Stored sum = empty(s, out, 4);
      if (out == Storage::e4m3_tensor) sum.scales.f32()[0] = 1;
      stored_sum(s, {.parts = Stored::plain(testing::tensor_of(s, {1, bad, 2, 3}, {4})), .sum = sum});
      EXPECT_EQ(value_at(sum, 0), 1);
      EXPECT_TRUE(std::isnan(value_at(sum, 1)));
    }
}

TEST(StoredSum, EveryThreadCountAndInstructionSetGivesTheSameBits) {
  Stream s(Device::cpu);
  const Stored parts = filled(s, Storage::e4m3, 3 * 12800, 9), sum = empty(s, Storage::e4m3, 12800);
  std::vector<std::vector<std::uint8_t>> codes;
  for (const int threads : {1, 2, 3})
    for (auto* const kernel : testing::kernels(cpu::v3::stored_sum, cpu::v4::stored_sum)) {
      const testing::WithThreads limit(threads);
      kernel({.parts = parts, .sum = sum});
      codes.push_back(testing::bytes(sum.codes));
      EXPECT_EQ(codes.back(), codes.front()) << threads;
    }
}

TEST(StoredSum, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Stored x = empty(s, Storage::f32, 256), codes = empty(s, Storage::e4m3, 200), half = empty(s, Storage::e4m3, 100);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = empty(s, Storage::f32, 100)}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = codes, .sum = empty(s, Storage::f32, 100)}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = empty(s, Storage::f32, 64)}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = empty(s, Storage::f16, 256)}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = x, .counts = s.empty({2}, DType::i64)}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = half, .sum = half, .counts = s.empty({1}, DType::i64)}), ContractError);
  EXPECT_NO_THROW(stored_sum(s, {.parts = half, .sum = half, .counts = s.empty({2}, DType::i64)}));
  const std::vector<Stored> short_part{half}, many(16, x);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = x, .more = short_part}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = x, .sum = x, .more = many}), ContractError);
  EXPECT_THROW(stored_sum(s, {.parts = half, .sum = half, .adds = true}), ContractError) << "8-bit sums are rounded by ops::accumulate";
}

}  // namespace
}  // namespace octet::ops
