#include "octet/tensor/cpu/threads.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <atomic>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::cpu {

#ifdef _OPENMP
int threads() { return omp_get_max_threads(); }
int this_thread() { return omp_get_thread_num(); }
void set_threads(int n) { omp_set_num_threads(n); }
#else
int threads() { return 1; }
int this_thread() { return 0; }
void set_threads(int) {}
#endif

void require_threads() {
  constexpr int others = 6;  // signals, loader, checkpoints; good neighbour: one, and a team of two
  static std::atomic<int> possible{0};
  const int wanted = threads() + others;
  if (possible >= wanted) return;
  std::vector<std::thread> begun;
  std::latch all(1);
  bool refused = false;
  try {
    while (int(begun.size()) < wanted) begun.emplace_back([&] { all.wait(); });
  } catch (const std::system_error&) {
    refused = true;
  }
  all.count_down();
  for (std::thread& t : begun) t.join();
  if (refused)
    throw DeviceError(
        format("{} threads are needed, {} to compute with, and the system lets this process begin {}: raise the limit of processes (ulimit "
               "-u) or of "
               "memory (ulimit -v), or set OMP_NUM_THREADS=1",
               wanted, threads(), begun.size()));
  possible = wanted;
}

}  // namespace octet::cpu
