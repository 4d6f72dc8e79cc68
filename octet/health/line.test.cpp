#include "octet/health/line.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "octet/base/error.hpp"

namespace octet::health {
namespace {

TEST(Line, GoesOnWithoutItsOutliers) {
  EXPECT_DOUBLE_EQ(next_of_line(std::vector{3.0, 2.5}), 2.0);
  std::vector<double> x;
  for (int i = 0; i < 16; ++i) x.push_back(10 - 0.25 * i);
  EXPECT_DOUBLE_EQ(next_of_line(x), 6.0);
  x[2] = 1e6, x[9] = -1e6, x[15] = 1e9, x[14] = 50;
  EXPECT_DOUBLE_EQ(next_of_line(x), 6.0);
  EXPECT_THROW(next_of_line(std::vector{1.0}), ContractError);
}

}  // namespace
}  // namespace octet::health
