#include "octet/tensor/shape.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace octet {
namespace {

TEST(Shape, CountsTheProductOfItsDimensions) {
  EXPECT_EQ(Shape({3, 4, 5, 6}).count(), 360);
  EXPECT_EQ(Shape({7}).count(), 7);
  EXPECT_EQ(Shape({7, 0}).count(), 0);
  EXPECT_EQ(Shape({1 << 20, 1 << 20}).count(), std::int64_t(1) << 40) << "more than 32 bits hold";
  EXPECT_EQ(Shape().count(), 1) << "a scalar";
  EXPECT_EQ(Shape().rank, 0);
}

TEST(Shape, IsEqualOnlyWithTheSameRank) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({3, 2}));
  EXPECT_FALSE(Shape({2, 3}) == Shape({2, 3, 1})) << "as many values, another rank";
}

TEST(Shape, PrintsItsDimensionsOutermostFirst) {
  EXPECT_EQ(to_text(Shape{8192, 4096}), "[8192, 4096]");
  EXPECT_EQ(to_text(Shape{1, 0, 2, 3}), "[1, 0, 2, 3]");
  EXPECT_EQ(to_text(Shape{}), "[]");
}

TEST(Shape, DivisionsRoundUp) {
  for (std::int64_t a = 0; a <= 70; ++a)
    for (std::int64_t b = 1; b <= 9; ++b) {
      std::int64_t parts = 0;  // of b that cover a
      while (parts * b < a) ++parts;
      EXPECT_EQ(ceil_div(a, b), parts) << a << " / " << b;
      EXPECT_EQ(round_up(a, b), parts * b) << a << " / " << b;
    }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ceil_div(most, 2), most / 2 + 1) << "without overflow";
}

}  // namespace
}  // namespace octet
