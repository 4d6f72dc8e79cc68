#include "octet/numerics/bf16_parts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace octet {
namespace {

double sum_of(const Bf16Parts& p) { return double(to_float(p.part[0])) + double(to_float(p.part[1])) + double(to_float(p.part[2])); }

TEST(Bf16Parts, AddUpToTheValue) {
  // All exponents, and significands of every pattern of leading and trailing bits.
  for (std::uint32_t exponent = 1; exponent < 255; ++exponent)
    for (int high = 0; high <= 23; ++high)
      for (int low = 0; low <= 23; ++low)
        for (const std::uint32_t sign : {0u, 1u}) {
          const std::uint32_t fraction = ((1u << high) - 1) ^ ((1u << low) - 1) ^ (exponent * 2654435761u >> 9 & ((1u << low) - 1));
          const float x = float_of(sign << 31 | exponent << 23 | (fraction & 0x7FFFFF));
          const double error = std::fabs(sum_of(bf16_parts(x)) - double(x));
          if (std::fabs(x) >= 0x1p-110f) ASSERT_EQ(error, 0) << x;
          else ASSERT_LT(error, 0x1p-133) << x;
        }
  EXPECT_EQ(sum_of(bf16_parts(0.0f)), 0);
}

TEST(Bf16Parts, AreOfDecreasingSizeAndOneSign) {
  const Bf16Parts p = bf16_parts(-1.0f - 0x1p-8f - 0x1p-23f);
  EXPECT_EQ(to_float(p.part[0]), -1.0f);
  EXPECT_EQ(to_float(p.part[1]), -0x1p-8f);
  EXPECT_EQ(to_float(p.part[2]), -0x1p-23f);
}

TEST(Bf16Parts, OfInfinityAndNaNAreOne) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), float_of(0x7F800001u)}) {
    const Bf16Parts p = bf16_parts(x);
    if (std::isnan(x)) EXPECT_TRUE(std::isnan(to_float(p.part[0])));
    else EXPECT_EQ(to_float(p.part[0]), x);
    EXPECT_EQ(to_float(p.part[1]), 0);
    EXPECT_EQ(to_float(p.part[2]), 0);
  }
  EXPECT_EQ(to_float(bf16_parts(std::numeric_limits<float>::max()).part[0]), 0x1.fep127f) << "is not rounded to infinity";
}

}  // namespace
}  // namespace octet
