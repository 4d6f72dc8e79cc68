#pragma once

#include <cstdint>

namespace octet::cpu {

/// Decides from how often the system takes the processor away from this process whether others want it, too.
class Contention {
 public:
  /// `preemptions`: involuntary context switches of the process so far, asked every sample_seconds. Contended from the first sample with at
  /// least `many` of them on, until `quiet_samples` in a row have fewer.
  bool sample(std::int64_t preemptions);

  static constexpr double sample_seconds = 0.05;
  static constexpr std::int64_t many = 3;
  static constexpr int quiet_samples = 40;

 private:
  std::int64_t last_ = -1;
  int quiet_ = quiet_samples;
};

/// Lets this process's OpenMP threads wait for each other without keeping a processor that others want. An idle thread of libgomp spins for
/// some milliseconds before it sleeps, which is the fastest where the process is alone, and costs a factor of two to three where it is not.
/// While the process is contended, libgomp is brought into its own state for more threads than processors, in which it sleeps at once. Runs
/// on a separate thread, from the first call on, once per process. Does nothing where the user has chosen (OMP_WAIT_POLICY, GOMP_SPINCOUNT)
/// or fewer threads than processors compute.
void be_a_good_neighbour();

}  // namespace octet::cpu
