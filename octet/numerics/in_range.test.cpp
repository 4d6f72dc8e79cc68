#include "octet/numerics/in_range.hpp"

#include <gtest/gtest.h>

#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Worst, testing::worst_over_floats;

template <class Format>
class InRangeOf : public ::testing::Test {};
using Fp8Formats = ::testing::Types<E4M3, E5M2>;
TYPED_TEST_SUITE(InRangeOf, Fp8Formats);

TYPED_TEST(InRangeOf, FloatsHasTheCodeAndTheValueOfTheGeneralEncoder) {
  const Worst worst = worst_over_floats(
      [](float x) {
        if (!(magnitude(x) <= TypeParam::nearest_to_max)) return 0;
        const InRange<TypeParam, float> fast(x);
        const std::uint8_t code = encode<TypeParam>(x);
        const float value = decode<TypeParam>(code);
        return fast.code() == code && bits_of(fast.value()) == bits_of(value) && fast.size() == magnitude(value) ? 0 : 1;
      },
      {TypeParam::max, TypeParam::nearest_to_max, TypeParam::min_subnormal, 0.0f, 1.0f});
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

}  // namespace
}  // namespace octet
