#include "octet/parallel/long_work.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::parallel {
namespace {

constexpr double limit = 0.5;

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(LongWork, OfOneRankMayTakeLongerThanTheLimit) {
  comm::run_on_threads({.ranks = 3, .limit_seconds = limit}, [&](comm::Communicator& c) {
    Stream stream(Device::cpu);
    bool done = false;
    long_work(stream, c, [&] {
      if (c.rank() == 1) sleep_seconds(2.5 * limit);
      done = true;
    });
    EXPECT_TRUE(done);
    EXPECT_EQ(total(stream, c, 1), 3) << "and the ranks continue together";
  });
}

TEST(LongWork, ThrowsItsErrorOnItsRankWhenAllAreDone) {
  comm::run_on_threads({.ranks = 2, .limit_seconds = limit}, [&](comm::Communicator& c) {
    Stream stream(Device::cpu);
    std::string error;
    try {
      long_work(Device::cpu, c, [&] {
        if (c.rank() == 1) throw IoError("no such file");
        sleep_seconds(0.05);
      });
    } catch (const IoError& e) {
      error = e.what();
    }
    EXPECT_EQ(error, c.rank() == 1 ? "no such file" : "");
    EXPECT_EQ(total(stream, c, 1), 2);
  });
}

TEST(LongWork, OfTheFirstRankIsDoneThereAloneAndTheOthersWait) {
  std::atomic<int> calls = 0;
  comm::run_on_threads({.ranks = 3, .limit_seconds = limit}, [&](comm::Communicator& c) {
    Stream stream(Device::cpu);
    bool own = false;
    work_of_first(stream, c, [&] { sleep_seconds(1.5 * limit), own = true, ++calls; });
    EXPECT_EQ(own, c.rank() == 0);
    EXPECT_EQ(calls, 1) << "it is done";
  });
}

TEST(HostValues, OfAnyRankAreBroughtToTheFirst) {
  comm::run_on_threads({.ranks = 3, .limit_seconds = 10}, [](comm::Communicator& c) {
    Stream stream(Device::cpu);
    for (int from = 0; from < 3; ++from) {
      const std::vector<float> got = brought_to_first(stream, c, std::vector<float>(5, float(c.rank())), from, 5);
      EXPECT_EQ(got, c.rank() == 0 ? std::vector<float>(5, float(from)) : std::vector<float>());
    }
  });
}

TEST(LongWork, EndsWithinTheLimitWhereARankIsLost) {
  const double begin = monotonic_seconds();
  EXPECT_THROW(comm::run_on_threads({.ranks = 2, .limit_seconds = limit},
                                    [&](comm::Communicator& c) {
                                      Stream stream(Device::cpu);
                                      if (c.rank() == 1) return sleep_seconds(2 * limit);
                                      long_work(stream, c, [] { sleep_seconds(0.01); });
                                    }),
               comm::CommError);
  EXPECT_LT(monotonic_seconds() - begin, 10 * limit);
}

TEST(LongWork, SpeaksAndComputesAsItsCaller) {
  comm::run_on_threads({.ranks = 2, .limit_seconds = 20}, [&](comm::Communicator& c) {
    Stream stream(Device::cpu);
    std::optional<log::Silence> silence;
    if (c.rank() == 1) silence.emplace();
    cpu::set_threads(3);
    long_work(stream, c, [&] {
      EXPECT_EQ(log::silent(), c.rank() == 1);
#ifdef _OPENMP
      EXPECT_EQ(cpu::threads(), 3);
#endif
    });
  });
}

}  // namespace
}  // namespace octet::parallel
