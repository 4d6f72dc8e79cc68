#include "octet/comm/threads/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "octet/base/clock.hpp"

namespace octet::comm {
namespace {

using std::chrono::milliseconds;

Tensor ones(Stream& s, std::int64_t n = 8) {
  const Tensor x = s.empty({n}, DType::f32);
  std::fill_n(x.f32(), n, 1.0f);
  return x;
}

// Runs until an error, which it returns.
CommError error_of(const ThreadRanks& ranks, const std::function<void(Communicator&)>& work) {
  try {
    run_on_threads(ranks, work);
  } catch (const CommError& e) {
    return e;
  }
  ADD_FAILURE() << "no CommError";
  return {{}, 0, 1, 0, 0, ""};
}
bool has(const std::exception& e, std::string_view text) { return std::string_view(e.what()).find(text) != std::string_view::npos; }

TEST(ThreadRanks, ARankThatDoesNotComeIsNamedWithinTheLimit) {
  const double start = monotonic_seconds();
  std::atomic<int> told = 0;
  const CommError e = error_of({.ranks = 4, .limit_seconds = 0.2}, [&](Communicator& c) {
    Stream s(Device::cpu);
    c.set_step(17);
    c.barrier(s);
    if (c.rank() == 2) return std::this_thread::sleep_for(milliseconds(400));
    try {
      c.all_reduce(s, ones(s), Reduction::sum);
    } catch (const CommError& error) {
      EXPECT_EQ(error.peer, 2);
      EXPECT_EQ(error.rank, c.rank());
      EXPECT_EQ(error.step, 17);
      EXPECT_EQ(error.collective, Collective::all_reduce);
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(has(e, "step 17: all_reduce (sum) of f32 [8]: rank 2 has not come within 0.2 s")) << e.what();
  EXPECT_LT(monotonic_seconds() - start, 5);
}

TEST(ThreadRanks, ARankThatFailsEndsAllAtOnceWithItsOwnError) {
  const double start = monotonic_seconds();
  try {
    run_on_threads({.ranks = 3}, [](Communicator& c) {
      Stream s(Device::cpu);
      if (c.rank() == 1) throw DataError("the file is torn");
      EXPECT_THROW(c.barrier(s), CommError);
      c.barrier(s);
    });
    FAIL();
  } catch (const DataError& e) {
    EXPECT_TRUE(has(e, "the file is torn"));
  }
  EXPECT_LT(monotonic_seconds() - start, 30) << "not by the limit of 60 s";
}

TEST(ThreadRanks, AFailureEndsTheWaitsOfSplitCommunicators) {
  EXPECT_THROW(run_on_threads({.ranks = 4},
                              [](Communicator& c) {
                                const auto part = c.split(c.rank() / 2, c.rank());
                                Stream s(Device::cpu);
                                if (c.rank() == 3) throw DataError("lost");
                                part->barrier(s);
                                part->barrier(s);
                                c.barrier(s);
                              }),
               DataError);
}

TEST(ThreadRanks, DifferentCollectivesAreRefusedByAll) {
  const CommError e = error_of({.ranks = 3}, [](Communicator& c) {
    Stream s(Device::cpu);
    c.all_reduce(s, ones(s, c.rank() == 2 ? 9 : 8), c.rank() == 1 ? Reduction::max : Reduction::sum);
  });
  EXPECT_EQ(e.peer, 1);
  EXPECT_TRUE(has(e, "rank 1 calls all_reduce (max) of f32 [8], but rank 0 all_reduce (sum) of f32 [8]")) << e.what();
}

TEST(ThreadRanks, UnevenPartsOfOtherSizesThanWantedAreRefusedByAll) {
  const CommError e = error_of({.ranks = 3}, [](Communicator& c) {
    Stream s(Device::cpu);
    const std::int64_t sent[] = {1, 2, 0}, all = 3, n = c.rank() == 0 ? 3 : c.rank() == 1 ? 6 : 1;
    const std::int64_t received[] = {n / 3, n / 3, n - n / 3 * 2};
    c.all_to_all(s, ones(s, all), sent, ones(s, n), received);
  });
  EXPECT_EQ(e.peer, 2);
  EXPECT_TRUE(has(e, "rank 2 sends 0 values to rank 2, which wants 1")) << e.what();
}

TEST(ThreadRanks, AReceiveOfAnotherSizeIsRefused) {
  const CommError e = error_of({.ranks = 2}, [](Communicator& c) {
    Stream s(Device::cpu);
    if (c.rank() == 0) c.send(s, ones(s, 8), 1);
    else c.receive(s, ones(s, 9), 0);
  });
  EXPECT_TRUE(has(e, "rank 0 sent f32 [8], but f32 [9] is received")) << e.what();
}

TEST(ThreadRanks, ARankThatHasEndedIsNotWaitedFor) {
  const double start = monotonic_seconds();
  for (const int delay : {0, 50})
    for (const Collective kind : {Collective::barrier, Collective::send, Collective::receive}) {
      const CommError e = error_of({.ranks = 2}, [&](Communicator& c) {
        Stream s(Device::cpu);
        c.barrier(s);
        if (c.rank() == 1) return std::this_thread::sleep_for(milliseconds(delay));
        if (delay == 0) std::this_thread::sleep_for(milliseconds(50));
        if (kind == Collective::barrier) c.barrier(s);
        else if (kind == Collective::send) c.send(s, ones(s), 1);
        else c.receive(s, ones(s), 1);
      });
      EXPECT_EQ(e.peer, 1);
      EXPECT_TRUE(has(e, "rank 1 has ended")) << e.what();
    }
  EXPECT_LT(monotonic_seconds() - start, 30) << "not by the limit of 60 s";
}

TEST(ThreadRanks, ASendThatIsNotReceivedEndsWithinTheLimit) {
  const CommError e = error_of({.ranks = 2, .limit_seconds = 0.1}, [](Communicator& c) {
    Stream s(Device::cpu);
    if (c.rank() == 0) c.send(s, ones(s), 1);
    else std::this_thread::sleep_for(milliseconds(300));
  });
  EXPECT_EQ(e.peer, 1);
  EXPECT_EQ(e.collective, Collective::send);
}

// Two ranks begin sends to each other, and meet before either receives; blocking sends would wait forever.
TEST(ThreadRanks, ABegunSendDoesNotWaitForItsReceive) {
  run_on_threads({.ranks = 2, .limit_seconds = 20}, [](Communicator& c) {
    Stream s(Device::cpu);
    const Tensor first = ones(s), second = ones(s);
    std::fill_n(first.f32(), 8, float(c.rank())), std::fill_n(second.f32(), 8, float(10 + c.rank()));
    const int other = 1 - c.rank();
    const BegunSend begun = c.begin_send(s, first, other), next = c.begin_send(s, second, other);
    c.barrier(s);
    const Tensor got = ones(s);
    c.receive(s, got, other);
    EXPECT_EQ(got.f32()[7], float(other));
    c.finish_send(begun);
    c.receive(s, got, other);
    EXPECT_EQ(got.f32()[7], float(10 + other));
    c.finish_send(next);
    EXPECT_EQ(c.traffic(Collective::send), (Traffic{2, 64}));
    c.finish_send({});
  });
}

TEST(ThreadRanks, ABegunSendThatIsNotReceivedEndsWithinTheLimitWhenItIsFinished) {
  for (const bool withdrawn : {false, true}) {
    const CommError e = error_of({.ranks = 2, .limit_seconds = 0.1}, [&](Communicator& c) {
      Stream s(Device::cpu);
      if (c.rank() == 0) {
        const BegunSend begun = c.begin_send(s, ones(s), 1);
        if (withdrawn) c.withdraw_sends();
        c.barrier(s);
        if (!withdrawn) c.finish_send(begun);
        else std::this_thread::sleep_for(milliseconds(300));
      } else {
        c.barrier(s);
        if (withdrawn) c.receive(s, ones(s), 0);
        else std::this_thread::sleep_for(milliseconds(300));
      }
    });
    EXPECT_EQ(e.peer, withdrawn ? 0 : 1);
    EXPECT_EQ(e.collective, withdrawn ? Collective::receive : Collective::send);
    EXPECT_TRUE(has(e, withdrawn ? "rank 0 has not sent within 0.1 s" : "send of f32 [8] to rank 1: rank 1 has not received within 0.1 s"))
        << e.what();
  }
}

TEST(ThreadRanks, EveryScheduleGivesTheSameBits) {
  std::vector<std::vector<float>> results(6);
  for (std::size_t trial = 0; trial < results.size(); ++trial)
    run_on_threads({.ranks = 5}, [&](Communicator& c) {
      Stream s(Device::cpu);
      const Tensor x = s.empty({3001}, DType::f32);
      std::mt19937 values(unsigned(c.rank())), delays(unsigned(100 * trial + std::size_t(c.rank())));
      for (int i = 0; i < 3001; ++i) x.f32()[i] = float(values()) * 0x1p-20f;
      for (int i = 0; i < 4; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(delays() % 2000));
        c.all_reduce(s, x, Reduction::sum);
      }
      if (c.rank() == int(trial) % 5) results[trial].assign(x.f32(), x.f32() + 3001);
    });
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST(ThreadRanks, RefusesNumbersOutOfRange) {
  const auto nothing = [](Communicator&) {};
  EXPECT_THROW(run_on_threads({.ranks = 0}, nothing), ConfigError);
  EXPECT_THROW(run_on_threads({.ranks = 1025}, nothing), ConfigError);
  EXPECT_THROW(run_on_threads({.ranks = 1, .limit_seconds = 0}, nothing), ConfigError);
}

}  // namespace
}  // namespace octet::comm
