#include "octet/data/majority.hpp"

#include <gtest/gtest.h>

#include <map>

#include "octet/numerics/philox.hpp"

namespace octet::data {
namespace {

Batch with_targets(std::vector<std::int32_t> targets) {
  return {.rows = 1, .length = std::int64_t(targets.size()), .targets = std::move(targets)};
}

double share(std::vector<std::int32_t> first, std::vector<std::int32_t> second = {}) {
  const std::vector<Batch> both{with_targets(std::move(first)), with_targets(std::move(second))};
  return majority_share(both);
}

TEST(MajorityShare, IsThatOfTheTokenInMoreThanHalfOfTheTargets) {
  EXPECT_EQ(share({}), 0);
  EXPECT_EQ(share({7}), 1);
  EXPECT_EQ(share({7, 7}, {7, 7}), 1);
  EXPECT_EQ(share({1, 2}), 0) << "a half is no majority";
  EXPECT_EQ(share({5, 1, 5}, {2, 5}), 0.6);
  EXPECT_EQ(share({1, 2}, {5, 5, 5, 5}), 4.0 / 6) << "over the border of batches";
  EXPECT_EQ(share({-1, -1, -1, -1, 3, 3, 4}), 2.0 / 3) << "masked targets do not count";
  EXPECT_EQ(share({-1, -1}), 0);
}

TEST(MajorityShare, IsThatOfACount) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<std::int32_t> targets;
    std::map<std::int32_t, int> counts;
    for (std::uint64_t i = 0; i < 1 + seed % 40; ++i) {
      const std::uint32_t draw = philox(seed, i).w[0];
      targets.push_back(draw % 10 < 5 ? 3 : std::int32_t(draw % 7));
      ++counts[targets.back()];
    }
    int most = 0;
    for (const auto& [token, n] : counts) most = std::max(most, n);
    const int all = int(targets.size());
    EXPECT_EQ(share(targets), 2 * most > all ? double(most) / all : 0) << seed;
  }
}

}  // namespace
}  // namespace octet::data
