#include "octet/tensor/cpu/neighbour.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace octet::cpu {

bool Contention::sample(std::int64_t preemptions) {
  const bool contended = last_ >= 0 && preemptions - last_ >= many;
  last_ = preemptions;
  quiet_ = contended ? 0 : quiet_ + (quiet_ < quiet_samples);
  return quiet_ < quiet_samples;
}

#ifdef _OPENMP
namespace {

/// While it exists, OpenMP has a second team of sleeping threads. libgomp then counts more threads than processors, and its waits sleep.
class SleepingTeam {
 public:
  SleepingTeam() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::atomic<int> begun{0};  // an empty region would be compiled to nothing
#pragma omp parallel num_threads(2)
      ++begun;
      std::unique_lock lock(mutex_);
      ended_.wait(lock, stop, [] { return false; });
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

std::int64_t preemptions() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_nivcsw;
}

void watch() {
  Contention contention;
  std::optional<SleepingTeam> team;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(Contention::sample_seconds));
    const bool contended = contention.sample(preemptions());
    if (contended && !team && omp_get_max_threads() >= omp_get_num_procs()) team.emplace();
    if (!contended) team.reset();
  }
}

}  // namespace

void be_a_good_neighbour() {
  static const bool begun = [] {
    if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return false;
    std::thread(watch).detach();
    return true;
  }();
  (void)begun;
}
#else
void be_a_good_neighbour() {}
#endif

}  // namespace octet::cpu
