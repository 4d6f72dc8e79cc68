#include "octet/bench/timing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace octet::bench {
namespace {

TEST(Timing, OfSeveralWaysTakesTheirBuffersInTurnAndTimesEach) {
  Stream s(Device::cpu);
  struct Use {
    std::size_t way, set;
  };
  std::vector<Use> uses;
  std::size_t sets = 0;
  const Effort effort{.repeats = 3, .sample_seconds = 1e-3, .working_set_bytes = 4 << 20};
  const std::vector<Timing> ways = measure_ways(s, effort, [&](Stream& stream) {
    const Tensor buffer = stream.zeros({1 << 20}, DType::u8);
    std::vector<Launch> out;
    for (const std::size_t way : {0, 1})
      out.push_back([&uses, way, set = sets] {
        uses.push_back({way, set});
        std::this_thread::sleep_for(std::chrono::milliseconds(way == 0 ? 2 : 6));
      });
    ++sets;
    return out;
  });
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_GE(ways[0].best, 2e-3);
  EXPECT_GE(ways[1].best, 6e-3);
  EXPECT_EQ(sets, 4U);
  // Once per set to warm up, or once in all for a later way; once to see its length, and three samples of one launch.
  ASSERT_EQ(uses.size(), (sets + 4) + (1 + 4));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    EXPECT_EQ(uses[i].set, i % sets);
    EXPECT_EQ(uses[i].way, i < sets + 4 ? 0U : 1U);
  }
  EXPECT_EQ(s.arena().in_use(), 0U);
}

TEST(Timing, IsGivenUpBetweenSamplesAndFreesItsBuffers) {
  static int asked = 0;
  Stream s(Device::cpu);
  const Effort effort{.repeats = 9, .sample_seconds = 1e-6, .stopped = [] { return ++asked > 3; }};
  int launches = 0;
  EXPECT_THROW(measure(s, effort,
                       [&](Stream& stream) {
                         stream.zeros({16}, DType::u8);
                         return Launch([&] { ++launches; });
                       }),
               Stopped);
  EXPECT_EQ(asked, 4) << "before it warms up, and before each sample";
  EXPECT_GE(launches, 4) << "warm-up, its length, and two samples";
  EXPECT_EQ(s.arena().in_use(), 0U);
}

}  // namespace
}  // namespace octet::bench
