#include "octet/tensor/cpu/neighbour.hpp"

#include <gtest/gtest.h>

namespace octet::cpu {
namespace {

TEST(Contention, BeginsWithPreemptionsAndEndsAfterSomeQuietTime) {
  Contention c;
  EXPECT_FALSE(c.sample(1000)) << "what was before the first sample says nothing";
  EXPECT_FALSE(c.sample(1000 + Contention::many - 1)) << "now and then every process is preempted";
  EXPECT_TRUE(c.sample(1100));
  for (int i = 1; i < Contention::quiet_samples; ++i) EXPECT_TRUE(c.sample(1100)) << i;
  EXPECT_FALSE(c.sample(1100));
  EXPECT_TRUE(c.sample(1200));
}

}  // namespace
}  // namespace octet::cpu
