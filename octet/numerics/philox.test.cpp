#include "octet/numerics/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace octet {
namespace {

void expect_words(const RandomWords& got, const RandomWords& expected) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.w[i], expected.w[i]) << "word " << i;
}

// The three vectors for philox4x32-10 of kat_vectors in Random123, the authors' own library. Words run from low to high.
TEST(Philox, GivesThePublishedAnswers) {
  expect_words(philox(0, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect_words(philox(~0ull, ~0ull, ~0ull), {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_words(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e), {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, UniformStaysInsideZeroAndOneAndIsSymmetric) {
  EXPECT_EQ(uniform(0), 0x1p-24f);
  EXPECT_LT(uniform(~0u), 1.0f);
  EXPECT_EQ(uniform(~0u), 1.0f - 0x1p-24f);
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const std::uint32_t word = philox(1, i).w[0];
    ASSERT_EQ(uniform(word) + uniform(~word), 1.0f) << word;
  }
}

// The mean of n uniform numbers has variance 1 / (12 n); six standard errors.
TEST(Philox, UniformHasMeanOneHalfAndVarianceOneTwelfth) {
  constexpr int n = 400000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n / 4; ++i)
    for (const std::uint32_t word : philox(7, std::uint64_t(i)).w) {
      const double u = double(uniform(word)) - 0.5;
      sum += u, squares += u * u;
    }
  EXPECT_LE(std::abs(sum / n), 6 * std::sqrt(1.0 / 12 / n));
  EXPECT_LE(std::abs(squares / n - 1.0 / 12), 6 * std::sqrt(1.0 / 180 / n));  // the variance of u^2 is 1/80 - 1/144
}

// Source: draft-eastlake-fnv, test vectors of FNV-1a with 64 bits.
TEST(Hash, GivesThePublishedAnswersOfFnv1a) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace octet
