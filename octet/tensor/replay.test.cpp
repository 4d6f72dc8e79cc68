#include "octet/tensor/replay.hpp"

#include <gtest/gtest.h>

#include "octet/tensor/allocation_trace.hpp"
#include "tests/testing/testing.hpp"

namespace octet {
namespace {

TEST(Replay, OutsideOfAGpuTheBodyRunsEveryTime) {
  for (const Device device : {Device::cpu, Device::null}) {
    Stream stream(device);
    Replay replay;
    int runs = 0;
    for (int i = 0; i < 5; ++i) replay.run(stream, {8, 16, 0, i % 2}, [&] { ++runs; });
    EXPECT_EQ(runs, 5);
    EXPECT_EQ(replay.recorded(), 0);
  }
}

// Two parts with other work between them, of two forms in turn.
struct TwoParts {
  Stream stream{Device::null};
  Replay replay;
  int first = 0, second = 0;

  void turn(
      std::int64_t form, const std::function<void()>& in_second = [] {}) {
    const Replay::Turn turn = replay.begin(stream, {form});
    replay.part(stream, turn, 0, [&] { ++first, stream.count({.ops = 1}); });
    stream.count({.ops = 1000});
    replay.part(stream, turn, 1, [&] { ++second, stream.count({.ops = 10}), in_second(); });
  }
};

TEST(Replay, PartsAreReplayedTogetherAndTheirWorkIsCountedAgain) {
  TwoParts t;
  t.replay.pretend();
  for (int i = 0; i < 7; ++i) t.turn(1), t.turn(2);
  EXPECT_EQ(t.first, 6);
  EXPECT_EQ(t.second, 6);
  EXPECT_EQ(t.stream.work().ops, 14 * 1011);
  EXPECT_EQ(t.replay.recorded(), 2);
}

TEST(Replay, AfterAFailureAllPartsAreRecordedAgain) {
  TwoParts t;
  t.replay.pretend();
  for (int i = 0; i < 2; ++i) t.turn(1);
  EXPECT_THROW(t.turn(1, [] { throw DataError("as it was recorded"); }), DataError);
  EXPECT_EQ(t.first, 3);
  for (int i = 0; i < 3; ++i) t.turn(1);
  EXPECT_EQ(t.first, 4);
  EXPECT_EQ(t.second, 4);
}

TEST(Replay, PartsThatAreNotAllowedToBeRecordedMayDoOtherWorkEachTime) {
  TwoParts t;
  t.replay.pretend();
  t.replay.allow(false);
  for (int i = 0; i < 5; ++i) t.turn(1, [&] { t.stream.count({.ops = i}); });
  EXPECT_EQ(t.second, 5);
  EXPECT_EQ(t.replay.recorded(), 0);
}

TEST(Replay, WhileAnObserverIsInstalledEveryPartRuns) {
  struct Nothing final : Observer {
    void observe(std::string_view, std::string_view, const Tensor&) override {}
  } observer;
  TwoParts t;
  t.replay.pretend();
  for (int i = 0; i < 4; ++i) t.turn(1);
  t.stream.set_observer(&observer);
  t.turn(1);
  t.stream.set_observer(nullptr);
  t.turn(1);
  EXPECT_EQ(t.first, 4);
}

TEST(Replay, APartThatNeedsOtherAddressesOrHasOtherWorkIsRefused) {
  for (const Device device : {Device::cpu, Device::null}) {
    Stream stream(device);
    Replay replay;
    const auto part = [&](std::int64_t form, const Replay::Body& body) { replay.part(stream, replay.begin(stream, {form}), 0, body); };
    const auto allocate = [&](std::int64_t form) {
      part(form, [&] {
        const Scope scope(stream);
        stream.empty({100}, DType::f32);
      });
    };
    for (int i = 0; i < 3; ++i) allocate(1);
    {
      const Scope scope(stream);
      stream.empty({1}, DType::f32);
      EXPECT_THROW(allocate(1), ContractError);
      EXPECT_NO_THROW(allocate(2));
    }
    EXPECT_NO_THROW(allocate(1));
    EXPECT_THROW(allocate(2), ContractError);
    part(3, [&] { stream.count({.ops = 1}); });
    EXPECT_THROW(part(3, [&] { stream.count({.ops = 2}); }), ContractError);
  }
}

TEST(AllocationTrace, TellsAllocationsApartByPlaceAndSizeWithoutThoseOfTheRun) {
  Stream stream(Device::cpu);
  const auto trace = [&](std::int64_t before, std::int64_t count, Region region) {
    const Scope scope(stream, region);
    stream.empty({before}, DType::u8, region);
    const AllocationTrace t;
    {
      const AllocationTrace inner;
      stream.empty({count}, DType::u8, region);
      EXPECT_EQ(inner.value(), t.value());
    }
    return t.value();
  };
  const Region saved{Lifetime::micro_batch, 3};
  EXPECT_EQ(trace(1, 300, saved), trace(256, 500, saved)) << "the same place";
  EXPECT_NE(trace(1, 300, saved), trace(257, 300, saved));
  EXPECT_NE(trace(1, 300, saved), trace(1, 600, saved));
  EXPECT_NE(trace(1, 300, saved), trace(1, 300, Region(Lifetime::micro_batch, 4)));
  EXPECT_EQ(trace(1, 300, Lifetime::run), trace(400, 1, Lifetime::run));
}

}  // namespace
}  // namespace octet
