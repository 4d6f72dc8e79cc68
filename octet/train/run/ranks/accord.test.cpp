#include "octet/train/run/ranks/accord.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "octet/comm/threads/threads.hpp"

namespace octet::train {
namespace {

// The accord of ranks of which each says own(rank).
template <class Own>
std::vector<Accord> accords_of(int ranks, const Own& own) {
  std::vector<Accord> out;
  out.resize(std::size_t(ranks));
  comm::run_on_threads({.ranks = ranks, .limit_seconds = 20}, [&](comm::Communicator& c) {
    Stream stream(Device::cpu);
    out[std::size_t(c.rank())] = agree(stream, c, own(c.rank()));
  });
  return out;
}

TEST(Accord, IsTrueForAllWhereItIsForOne) {
  for (bool Accord::*flag : {&Accord::stop, &Accord::save, &Accord::saving, &Accord::out_of_time}) {
    const std::vector<Accord> all = accords_of(3, [&](int rank) {
      Accord own;
      own.*flag = rank == 1;
      return own;
    });
    for (const Accord& a : all) {
      EXPECT_TRUE(a.*flag);
      EXPECT_EQ(a.stop + a.save + a.saving + a.out_of_time, 1) << "the other flags are no one's";
    }
  }
  for (const Accord& a : accords_of(2, [](int) { return Accord{}; })) EXPECT_FALSE(a.stop || a.save || a.saving || a.out_of_time);
}

TEST(Accord, HasTheTimesOfTheSlowestRankAndOfEach) {
  const std::vector<Accord> all = accords_of(3, [](int rank) { return Accord{.seconds = 2.0 - rank % 2, .waited = 0.25 * rank}; });
  for (const Accord& a : all) {
    EXPECT_EQ(a.seconds, 2);
    EXPECT_EQ(a.waited, 0.5);
    ASSERT_EQ(a.ranks.size(), 3u);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(a.ranks[std::size_t(r)].seconds, 2.0 - r % 2);
  }
}

TEST(Accord, HasTheGpuOfEachRank) {
  const std::vector<Accord> all = accords_of(2, [](int rank) {
    return Accord{.gpu = {.utilization = 0.5, .power = 300.0 + rank, .sm_clock = 1980, .memory_used = 5e10, .throttling = 4 << rank}};
  });
  for (int r = 0; r < 2; ++r) {
    const machine::GpuReading& gpu = all[1].ranks.at(std::size_t(r)).gpu;
    EXPECT_TRUE(gpu.utilization == 0.5 && gpu.power == 300 + r && gpu.sm_clock == 1980 && gpu.memory_used == 5e10);
    EXPECT_TRUE(std::isnan(gpu.temperature) && gpu.throttling == 4 << r);
  }
}

TEST(Accord, OfOneRankIsItsOwn) {
  const Accord a = accords_of(1, [](int) { return Accord{.stop = true, .seconds = 3}; })[0];
  EXPECT_TRUE(a.stop && !a.save);
  EXPECT_EQ(a.ranks.size(), 1u);
}

}  // namespace
}  // namespace octet::train
