#include "octet/bench/progress.hpp"

#include <gtest/gtest.h>

namespace octet::bench {
namespace {

TEST(Progress, TheTimeLeftIsThatOfEarlierMeasurements) {
  EXPECT_EQ(progress_text("gemm", 1, 4, 0.1), "measuring gemm, 1 of 4 ...");
  EXPECT_EQ(progress_text("norm", 3, 4, 10), "measuring norm, 3 of 4, about 10 s left ...");  // 2 took 10 s, 2 are left
}

}  // namespace
}  // namespace octet::bench
