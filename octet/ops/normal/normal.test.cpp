#include "octet/ops/normal/normal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "octet/numerics/philox.hpp"
#include "octet/ops/stored/stored.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

std::vector<float> filled(std::uint64_t key, double deviation, std::int64_t n) {
  Stream stream(Device::cpu);
  const Tensor x = stream.empty({n}, DType::f32);
  fill_normal(stream, key, deviation, x);
  return {x.f32(), x.f32() + n};
}

// The formula in long double. The angle, up to 2 pi, is within 2^-22 for its constant and 2^-22 for its product, sine and cosine within
// 1e-7; logarithm, root and last product within 2^-22 of the radius: together below 2^-20 of it.
TEST(Normal, ValuesAreThoseOfTheFormula) {
  const auto values = filled(9, 1, 100003);
  for (std::int64_t e = 0; e < std::int64_t(values.size()); ++e) {
    const RandomWords r = philox(9, std::uint64_t(e / 4));
    const int at = e % 4 / 2 * 2;
    const long double u = uniform(r.w[at]), v = uniform(r.w[at + 1]), radius = std::sqrt(-2 * std::log(u)),
                      angle = 2 * std::acos(-1.0L) * v;
    const long double exact = radius * (e % 2 ? std::sin(angle) : std::cos(angle));
    ASSERT_NEAR(double(values[std::size_t(e)]), double(exact), double(radius) * 0x1p-20) << e;
  }
}

// Means of n values of z, z^2 and z^4, and of products of neighbours, within five of their standard errors.
TEST(Normal, ValuesAreNormalAndIndependent) {
  const double n = 1 << 20;
  const auto values = filled(4, 0.5, std::int64_t(n));
  double first = 0, second = 0, fourth = 0, neighbours = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double z = 2 * double(values[i]);
    first += z, second += z * z, fourth += z * z * z * z;
    if (i > 0) neighbours += z * 2 * double(values[i - 1]);
  }
  EXPECT_NEAR(first / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(second / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(neighbours / n, 0, 5 / std::sqrt(n));
}

TEST(Normal, AnElementDoesNotDependOnHowManyThereAreNorBf16OnMoreThanRounding) {
  const auto all = filled(4, 0.02, 10007);
  for (const std::int64_t n : {0, 1, 2, 3, 5, 63, 4097}) {
    const auto some = filled(4, 0.02, n);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << n;
  }
  Stream stream(Device::cpu);
  const Tensor x = stream.empty({10007}, DType::bf16);
  fill_normal(stream, 4, 0.02, x);
  for (std::int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(x.bf16()[i].bits, to_bf16(all[std::size_t(i)]).bits) << i;
  EXPECT_NE(filled(5, 0.02, 8), filled(4, 0.02, 8));
}

TEST(Normal, OfEveryStorageAreTheCodesAndScalesOfTheValuesInF32) {
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded})
    for (const std::int64_t n : {0, 1, 7, 127, 128, 129, 5000, 100003}) {
      Stream stream(Device::cpu);
      const auto stored = [&] {
        Stored x{.codes = stream.empty({n}, code_type(storage)), .scales = {}, .storage = storage};
        if (scales_tensor(storage) || scales_blocks(storage)) x.scales = stream.empty(scales_shape(storage, n), scales_type(storage));
        std::memset(x.codes.data, 0xA5, x.codes.bytes());
        return x;
      };
      const Stored got = stored(), wanted = stored();
      const Tensor values = stream.empty({n}, DType::f32);
      fill_normal(stream, 11, 0.02, values);
      encode_stored(stream, values, wanted);
      for (const int threads : {1, 3}) {
        const testing::WithThreads some(threads);
        fill_normal(stream, 11, 0.02, StoredSlice{got, {n}});
        EXPECT_EQ(testing::bytes(got.codes), testing::bytes(wanted.codes)) << name(storage) << " " << n;
        if (got.scales) {
          EXPECT_EQ(testing::bytes(got.scales), testing::bytes(wanted.scales)) << name(storage) << " " << n;
        }
      }
    }
}

TEST(Normal, ASliceHasTheCodesAndTheScaleOfItsPartOfTheWhole) {
  constexpr std::int64_t n = 5000;
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3_tensor, Storage::e4m3})
    for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 128}, {128, 300}, {4864, 136}, {4992, 8}, {4992, 0}}) {
      Stream stream(Device::cpu);
      const auto stored = [&](std::int64_t values) {
        Stored x{.codes = stream.empty({values}, code_type(storage)), .scales = {}, .storage = storage};
        if (scales_tensor(storage) || scales_blocks(storage)) x.scales = stream.empty(scales_shape(storage, values), scales_type(storage));
        return x;
      };
      const Stored whole = stored(n), slice = stored(count);
      fill_normal(stream, 11, 0.02, StoredSlice{whole, {n}});
      fill_normal(stream, 11, 0.02, StoredSlice{slice, {n}, first});
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(value_at(slice, i), value_at(whole, first + i)) << name(storage) << " " << first;
      if (scales_tensor(storage)) {
        EXPECT_EQ(testing::bytes(slice.scales), testing::bytes(whole.scales)) << name(storage) << " " << first;
      }
    }
  Stream stream(Device::cpu);
  const Stored two = Stored::plain(stream.empty({2}, DType::f32));
  EXPECT_THROW(fill_normal(stream, 1, 1, StoredSlice{two, {200}, 127}), ContractError);
  EXPECT_THROW(fill_normal(stream, 1, 1, StoredSlice{two, {129}, 128}), ContractError);
}

TEST(Normal, APartHasTheValuesOfItsPlacesInTheWhole) {
  const Cut cuts[] = {Cut::of_rows({60, 84}, 7, 31),
                      Cut::of_columns({60, 84}, 30, 21),
                      {.whole = {60, 84}, .pieces = {{84 * 5, 84 * 3, 84 * 5, 84 * 5}, {10 * 13, 84 * 20 + 1, 13, 84}}}};
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3_tensor, Storage::e4m3})
    for (const Cut& cut : cuts) {
      Stream stream(Device::cpu);
      std::int64_t n = 0;
      for (const CutPiece& p : cut.pieces) n += p.count;
      const Tensor whole = stream.empty({60 * 84}, DType::f32), part = stream.empty({n}, DType::f32);
      fill_normal(stream, 11, 0.02, whole);
      each_run(cut.pieces, [&](std::int64_t begin, std::int64_t place, std::int64_t run) {
        std::copy_n(whole.f32() + place, run, part.f32() + begin);
      });
      const auto stored = [&](std::int64_t values) {
        Stored x{.codes = stream.empty({values}, code_type(storage)), .scales = {}, .storage = storage};
        if (scales_tensor(storage) || scales_blocks(storage)) x.scales = stream.empty(scales_shape(storage, values), scales_type(storage));
        return x;
      };
      const Stored wanted = stored(n), got = stored(n), slice = stored(n - 128);
      encode_stored(stream, part, wanted);
      fill_normal(stream, 11, 0.02, StoredSlice{got, {n}, 0, &cut});
      EXPECT_EQ(testing::bytes(got.codes), testing::bytes(wanted.codes)) << name(storage);
      fill_normal(stream, 11, 0.02, StoredSlice{slice, {n}, 128, &cut});
      if (!scales_tensor(storage)) fill_normal(stream, 11, 0.02, StoredSlice{stored(0), {n}, n, &cut});  // an empty one at the end
      for (std::int64_t i = 128; i < n; ++i) ASSERT_EQ(value_at(slice, i - 128), value_at(wanted, i)) << name(storage) << " " << i;
    }
}

}  // namespace
}  // namespace octet::ops
