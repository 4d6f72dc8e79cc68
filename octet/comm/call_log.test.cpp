#include "octet/comm/call_log.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::comm {
namespace {

TEST(CallLog, KeepsTheLastCallsInTheirOrder) {
  CallLog log;
  EXPECT_TRUE(log.calls().empty());
  float x[3] = {};
  const Tensor t{x, {3}, DType::f32};
  const auto calls = std::int64_t(CallLog::most) + 10;
  for (std::int64_t i = 1; i <= calls; ++i) {
    log.begin({Collective::all_reduce, t, t}, 7, 16, double(i));
    if (i < calls) log.end(double(i) + 0.5);
  }
  const std::vector<LoggedCall> kept = log.calls();
  ASSERT_EQ(kept.size(), CallLog::most);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].number, 11 + std::int64_t(i));
    EXPECT_EQ(kept[i].begin, double(kept[i].number));
    EXPECT_EQ(kept[i].step, 7);
    EXPECT_EQ(kept[i].count, 3);
    EXPECT_EQ(kept[i].sent_bytes, 16);
  }
  EXPECT_EQ(kept[0].end, 11.5);
  EXPECT_TRUE(std::isnan(kept.back().end)) << "it has not returned";
}

TEST(CallLog, HasABarrierWithoutATensor) {
  CallLog log;
  log.begin({}, -1, 0, 1);
  EXPECT_EQ(log.calls()[0].count, 0);
  EXPECT_EQ(log.calls()[0].kind, Collective::barrier);
}

}  // namespace
}  // namespace octet::comm
