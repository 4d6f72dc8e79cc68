#include "octet/train/run/config/run_config.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {
using octet::testing::error_of, octet::testing::has;

TEST(RunConfig, ARunOfAllTokensThatCanBeCountedHasAPositiveNumberOfSteps) {
  RunConfig c;
  c.train.tokens = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(c.steps(), std::numeric_limits<std::int64_t>::max() / c.tokens_per_step() + 1);
  c.train.tokens = c.tokens_per_step();
  EXPECT_EQ(c.steps(), 1);
}

TEST(RunConfig, AStepOfMoreTokensThanCanBeCountedIsRefused) {
  RunConfig c;
  c.train.batch = c.train.accumulate = 65536;
  c.data.sequence_length = std::int64_t(1) << 21;
  EXPECT_EQ(c.tokens_per_step(), std::int64_t(1) << 53);
  ++c.data.sequence_length;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.tokens_per_step(); }), "a step has at most 2^53 tokens"));
  c.data.sequence_length = std::numeric_limits<std::int64_t>::max(), c.train.tokens = 1;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.steps(); }), "a step has at most 2^53 tokens"));
}

}  // namespace
}  // namespace octet::train
