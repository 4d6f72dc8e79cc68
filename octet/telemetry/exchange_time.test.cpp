#include "octet/telemetry/exchange_time.hpp"

#include <gtest/gtest.h>

namespace octet::telemetry {
namespace {

using Kind = TracedActivity::Kind;

// A sum from 2 to 8 us whose first half runs beside a matrix product, and one from 12 to 13 us alone.
StepTrace sample() {
  return {.activities = {{Kind::kernel, "gemm", 0, 5000, 0, 7},
                         {Kind::kernel, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", 2000, 8000, 0, 9},
                         {Kind::copy, "host to device", 9000, 10000, 64, 7},
                         {Kind::kernel, "ncclDevKernel_AllGather_RING_LL(args)", 12000, 13000, 0, 9}},
          .gpu = true};
}

TEST(ExchangeTime, OnlyWhatNoOtherActivityCoversIsExposed) {
  const ExchangeTime all = exchange_time(sample(), {"step 4", 0, 20000});
  EXPECT_DOUBLE_EQ(all.seconds, 7e-6);
  EXPECT_DOUBLE_EQ(all.exposed, 4e-6);
}

TEST(ExchangeTime, IsCutAtTheEndsOfTheSpan) {
  const ExchangeTime part = exchange_time(sample(), {"optimizer", 7000, 12500});
  EXPECT_DOUBLE_EQ(part.seconds, 1.5e-6);
  EXPECT_DOUBLE_EQ(part.exposed, 1.5e-6);
  EXPECT_DOUBLE_EQ(exchange_time(sample(), {"read-out", 9000, 12000}).seconds, 0);
}

// A copy to another GPU from 6 to 8 us, whose receiver waits until 9 us.
TEST(ExchangeTime, OfACopyToAnotherGpuIncludesTheGapsBesideIt) {
  const StepTrace trace{.activities = {{Kind::kernel, "gemm", 0, 5000, 0, 7},
                                       {Kind::copy, TracedActivity::to_other_device, 6000, 8000, 64, 9},
                                       {Kind::kernel, "combine", 9000, 10000, 0, 7},
                                       {Kind::kernel, "gemm", 10500, 12000, 0, 7}},
                        .gpu = true};
  const ExchangeTime all = exchange_time(trace, {"step 4", 0, 20000});
  EXPECT_DOUBLE_EQ(all.seconds, 4e-6);
  EXPECT_DOUBLE_EQ(all.exposed, 4e-6);
}

}  // namespace
}  // namespace octet::telemetry
