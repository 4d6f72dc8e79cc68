#include "octet/comm/mpi/session.hpp"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "octet/base/check.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/comm_error.hpp"

namespace octet::comm {

std::string mpi_text(int code) {
  char text[512] = {};
  mpi_transport().describe(code, text, sizeof text);
  return text;
}

MpiDeadline::MpiDeadline(double limit_seconds, std::string what)
    : thread_([limit_seconds, what = std::move(what)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock(mutex);
        changed.wait_for(lock, stop, std::chrono::duration<double>(limit_seconds), [] { return false; });
        if (stop.stop_requested()) return;
        const std::string line =
            format("octet: {} within {} s: a rank is stopped, has ended or is no rank of Octet\n", what, limit_seconds);
        std::fwrite(line.data(), 1, line.size(), stderr);
        std::fflush(nullptr);
        std::_Exit(int(ExitCode::ranks));
      }) {}

MpiSession::MpiSession(const LaunchedRank& launched, double limit_seconds) : limit_seconds(limit_seconds) {
  static bool used = false;
  check(!used, "connect_mpi: MPI can be started once per process");
  used = true;
  const MpiDeadline watch(limit_seconds,
                          format("rank {} of {} on {}: MPI has not started on all ranks", launched.rank, launched.size, host_name()));
  if (const int code = mpi_transport().open(&world); code != 0) throw DeviceError(format("MPI cannot be started: {}", mpi_text(code)));
  MpiGroup* notes = nullptr;
  if (const int code = mpi_transport().split(world, 0, 0, &notes); code != 0) throw DeviceError(format("MPI: {}", mpi_text(code)));
  attendance.emplace(notes);
  meet();
}

// Finalizing waits for all ranks, so they come to a barrier first. A rank that has failed ends at once.
MpiSession::~MpiSession() {
  progress.reset();
  if (lost || std::uncaught_exceptions() > 0) return;
  try {
    MpiRequest* request = nullptr;
    if (mpi_transport().barrier(world, &request) != 0 || !wait_for(request, limit_seconds, [](double) {}).done) return;
    attendance.reset();
    const MpiDeadline watch(limit_seconds, format("rank {}: MPI has not ended on all ranks", mpi_transport().rank(world)));
    mpi_transport().close();
  } catch (const Error& e) {
    log::warn("MPI is not finalized: {}", e.what());
  }
}

void MpiSession::meet() {
  constexpr std::size_t room = 65;
  hosts.resize(std::size_t(mpi_transport().size(world)));
  std::vector<char> names(hosts.size() * room, 0);
  host_name().copy(names.data() + std::size_t(mpi_transport().rank(world)) * room, room - 1);
  MpiRequest* request = nullptr;
  if (const int code = mpi_transport().all_gather(world, nullptr, names.data(), room, &request); code != 0)
    throw DeviceError(format("MPI: {}", mpi_text(code)));
  if (!wait_for(request, limit_seconds, [](double) {}).done)
    throw CommError({}, mpi_transport().rank(world), int(hosts.size()), -1, -1,
                    format("not all ranks have come within {} s", limit_seconds));
  for (std::size_t r = 0; r < hosts.size(); ++r) hosts[r] = names.data() + r * room;
}

}  // namespace octet::comm
