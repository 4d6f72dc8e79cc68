#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/comm/mpi/attendance.hpp"
#include "octet/comm/mpi/module.hpp"
#include "octet/comm/mpi/progress.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"

namespace octet::comm {

/// MPI's own words.
std::string mpi_text(int code);

struct Waited {
  bool done = false;         // within the limit
  double longest_pause = 0;  // seconds between two questions: this process was stopped
};

/// Testing is what moves the bytes, so it sleeps only where a rank seems to be late; then `waiting` is called with the seconds so far.
/// Throws DeviceError with MPI's own words.
template <class Waiting>
Waited wait_for(MpiRequest* request, double limit_seconds, const Waiting& waiting) {
  const double start = monotonic_seconds();
  Waited out;
  for (double now = start;;) {
    int done = 0;
    if (const int code = mpi_transport().test(request, &done); code != 0) throw DeviceError(mpi_text(code));
    const double before = std::exchange(now, monotonic_seconds());
    out.done = done != 0, out.longest_pause = std::max(out.longest_pause, now - before);
    const double waited = now - start;
    if (out.done || waited > limit_seconds) return out;
    if (waited > std::min(0.2, limit_seconds / 8)) waiting(waited), std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (waited > 2e-5) std::this_thread::yield();  // ranks may have fewer processors than they need
  }
}

/// Ends this process, with the code of lost ranks and a line that says `what` has not happened, unless it is gone within the limit: for
/// calls of MPI that wait for other ranks and cannot be left.
class MpiDeadline {
 public:
  MpiDeadline(double limit_seconds, std::string what);

 private:
  std::jthread thread_;
};

/// MPI from its start to its end, once per process.
class MpiSession {
 public:
  /// Throws DeviceError where MPI cannot be started, CommError where not all ranks come.
  MpiSession(const LaunchedRank&, double limit_seconds);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;

  /// No call of MPI follows.
  void lose() { lost = true, progress->forget(); }

  MpiGroup* world = nullptr;
  double limit_seconds;
  bool lost = false;
  std::optional<Attendance> attendance;
  std::optional<Progress> progress{std::in_place};  // of begun sends
  std::vector<std::string> hosts;                   // of ranks

 private:
  void meet();
};

}  // namespace octet::comm
