#include "octet/data/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace octet::data {
namespace {

std::vector<std::uint64_t> order(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) {
  const Permutation permutation(size, seed, epoch);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < size; ++i) all.push_back(permutation(i));
  return all;
}

TEST(Permutation, MeetsEveryElementOnceWhateverTheSize) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t n = 1; n <= 130; ++n) sizes.push_back(n);
  for (const std::uint64_t n : {255, 256, 257, 999, 1023, 1024, 1025, 4095, 4097, 16384, 16385, 50'000, 65'536, 65'537}) sizes.push_back(n);
  for (const std::uint64_t n : sizes) {
    auto all = order(n, n * 31, n % 3);
    std::ranges::sort(all);
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(all[i], i) << "size " << n;
  }
}

TEST(Permutation, StaysInsideHugeRangesAndIsOneToOneThere) {
  for (const std::uint64_t size : {(std::uint64_t(1) << 40) + 1, std::uint64_t(1) << 63, ~std::uint64_t(0)}) {
    const Permutation permutation(size, 7, 1);
    std::vector<std::uint64_t> some;
    for (std::uint64_t i = 0; i < 2000; ++i) some.push_back(permutation(i * (size / 2000)));
    for (const std::uint64_t element : some) ASSERT_LT(element, size);
    std::ranges::sort(some);
    EXPECT_EQ(std::ranges::adjacent_find(some), some.end());
  }
}

TEST(Permutation, DependsOnSizeSeedAndEpochAndOnNothingElse) {
  EXPECT_EQ(order(1000, 5, 2), order(1000, 5, 2));
  EXPECT_NE(order(1000, 5, 2), order(1000, 6, 2));
  EXPECT_NE(order(1000, 5, 2), order(1000, 5, 3));
}

TEST(Permutation, TheOrderOfASeedNeverChanges) {
  // Resumed runs and published results stand on these numbers.
  EXPECT_EQ(order(10, 1, 0), (std::vector<std::uint64_t>{0, 4, 9, 3, 7, 1, 8, 5, 2, 6}));
  EXPECT_EQ(Permutation(1'000'000, 42, 3)(123'456), 979'327u);
}

TEST(Permutation, LeavesAsManyElementsInPlaceAndInPairsAsChanceDoes) {
  // Fixed points of a random permutation are Poisson with mean 1; so are successors that stay successors. Over 400 epochs both sums have
  // mean 400 and deviation 20; 6 deviations are passed with a chance of 2e-9.
  double fixed = 0, pairs = 0;
  for (std::uint64_t epoch = 0; epoch < 400; ++epoch) {
    const auto all = order(300, 9, epoch);
    for (std::uint64_t i = 0; i < all.size(); ++i) fixed += all[i] == i;
    for (std::uint64_t i = 1; i < all.size(); ++i) pairs += all[i] == all[i - 1] + 1;
  }
  EXPECT_LE(std::fabs(fixed - 400), 6 * 20);
  EXPECT_LE(std::fabs(pairs - 400), 6 * 20);
}

TEST(Permutation, PutsEveryElementEverywhereEquallyOften) {
  // Chi-square over 16 x 16 cells (place, element) in 4,000 epochs: 225 degrees of freedom, mean 225, deviation sqrt(450).
  constexpr std::size_t n = 16, epochs = 4000;
  constexpr double wanted = double(epochs) / n;
  std::vector<double> seen(n * n);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto all = order(n, 3, epoch);
    for (std::size_t i = 0; i < n; ++i) ++seen[i * n + all[i]];
  }
  double chi_square = 0;
  for (const double count : seen) chi_square += (count - wanted) * (count - wanted) / wanted;
  EXPECT_LE(std::fabs(chi_square - 225), 6 * std::sqrt(450));
}

}  // namespace
}  // namespace octet::data
