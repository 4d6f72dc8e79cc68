#include "octet/numerics/drawn.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/code_table.hpp"
#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::CodeTable, testing::Worst, testing::worst_over_floats;

constexpr std::int32_t extremes[] = {0, 1, 0x7FFF, 0x8000, 0xFFFF};
const CodeTable& fp16() {
  static const CodeTable table(5, 10, 15, true);
  return table;
}

std::int32_t fp16_code(float x, std::int32_t random) { return encode_fp16_drawn_lanes(x, random); }
std::int32_t e4m3_code(float x, std::int32_t random) { return encode_drawn_lanes<E4M3>(x, random); }

/// 0 if every draw gives one of the two codes around a finite x, the lower one by the least draw, and a code itself by every draw.
double neighbours_error(const CodeTable& codes, std::int32_t sign_bit, std::int32_t (*encode)(float, std::int32_t), float x) {
  if (!std::isfinite(x)) return 0;
  const double size = std::fabs(double(x));
  const auto low = std::int32_t(codes.below(size)), sign = std::signbit(x) ? sign_bit : 0;
  const bool exact = codes.finite()[std::size_t(low)] == size, saturated = std::size_t(low) + 1 == codes.finite().size();
  for (const std::int32_t random : extremes) {
    const std::int32_t code = encode(x, random);
    if (code != (sign | low) && (exact || saturated || random == 0 || code != (sign | (low + 1)))) return 1;
  }
  return 0;
}

TEST(Drawn, NeverLeavesTheTwoNeighbours) {
  const Worst eight =
      worst_over_floats([](float x) { return neighbours_error(CodeTable::e4m3(), 0x80, e4m3_code, x); }, CodeTable::e4m3().marks());
  EXPECT_EQ(eight.error, 0) << "at " << eight.at;
  const Worst half = worst_over_floats([](float x) { return neighbours_error(fp16(), 0x8000, fp16_code, x); });
  EXPECT_EQ(half.error, 0) << "at " << half.at;
}

TEST(Drawn, WhatIsNotFiniteIsShown) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int32_t random : extremes) {
    EXPECT_EQ(e4m3_code(nan, random), 0x7F);
    EXPECT_EQ(e4m3_code(-infinity, random), 0xFE) << "saturated";
    EXPECT_EQ(fp16_code(infinity, random), 0x7C00);
    EXPECT_EQ(fp16_code(-infinity, random), 0xFC00);
    EXPECT_TRUE(std::isnan(to_float(Fp16{std::uint16_t(fp16_code(nan, random))})));
  }
}

// Over all 65536 draws: each has one chance, so the mean is exact but for bits of x below the least draw.
TEST(Drawn, TheMeanOverAllDrawsIsTheValue) {
  for (const float x : {1.03f, -300.7f, 0x1.23p-8f, 0x1.5p-10f, -0x1.9p-12f, 5e-7f, 1e-4f}) {
    double eight = 0, half = 0;
    for (std::int32_t random = 0; random < 65536; ++random) {
      eight += decode<E4M3>(std::uint8_t(e4m3_code(x, random))) / 65536.0;
      half += to_float(Fp16{std::uint16_t(fp16_code(x, random))}) / 65536.0;
    }
    const double size = std::fabs(x), step8 = std::fmax(0x1p-9, size * 0x1p-3), step16 = std::fmax(0x1p-24, size * 0x1p-10);
    EXPECT_NEAR(eight, x, step8 * 0x1p-16);
    EXPECT_NEAR(half, x, step16 * 0x1p-13) << "FP16 drops 13 bits, and so uses 13 of a draw";
  }
}

TEST(Drawn, ARegisterGivesTheCodesOfItsLanes) {
  typedef float Vector __attribute__((vector_size(32)));
  const float values[] = {0, -1.7f, 449, 0x1p-12f, 70000, -INFINITY, NAN, 0x1.7p-16f};
  Vector x;
  IntOf<Vector> random;
  for (int i = 0; i < 8; ++i) x[i] = values[i], random[i] = 9000 * i % 65536;
  const IntOf<Vector> eight = encode_drawn_lanes<E4M3>(x, random), half = encode_fp16_drawn_lanes(x, random);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(eight[i], e4m3_code(x[i], random[i])) << x[i];
    EXPECT_EQ(half[i], fp16_code(x[i], random[i])) << x[i];
  }
}

}  // namespace
}  // namespace octet
