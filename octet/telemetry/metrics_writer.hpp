#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "octet/base/descriptor.hpp"
#include "octet/telemetry/event.hpp"
#include "octet/tensor/state.hpp"

namespace octet {

/// Appends events to a run's `metrics.jsonl`, one write() a line: whoever reads meanwhile, or after the process was killed, sees
/// whole lines and at most one torn last one. Lines reach the disk (fdatasync) every `sync_every` and with the last event, so that a
/// power loss costs no more than that. Safe from any thread; one process a file, by an advisory lock.
class MetricsWriter {
 public:
  /// Opens `path`, or makes it; a torn last line of an earlier process is cut off.
  /// Throws IoError, also when another process holds the file.
  explicit MetricsWriter(std::string path, std::chrono::seconds sync_every = std::chrono::seconds(10));
  ~MetricsWriter();

  /// A line that finds the disk full waits in memory for the next one's turn, up to 16 MiB of them; the file ends with a whole line
  /// meanwhile. Throws IoError when that is too much, when the event is the last one, or when the system refuses for another reason.
  void emit(const Event&);
  /// From now on every event goes to `show` as well, after its line was written or began to wait; one at a time, in the order of the lines.
  void mirror(std::function<void(const Event&)> show);

  /// Forgets all but the first `bytes`, which end with a line. Throws DataError when there are fewer, IoError.
  void cut_back(std::int64_t bytes);
  /// Bytes of whole lines so far; restoring cuts the file back to them. Throws IoError while lines are waiting for room.
  void visit_state(StateVisitor&);
  /// Returns when every line so far is on the disk; for any thread. Throws IoError.
  void make_durable();

 private:
  int write_waiting();
  [[noreturn]] void refuse_write(int reason);
  void sync();

  std::string path_;
  Descriptor file_;
  std::int64_t end_ = 0;  // of the last whole line
  std::string waiting_;   // whole lines that are not in the file yet
  std::chrono::seconds sync_every_;
  std::chrono::steady_clock::time_point last_sync_;
  std::function<void(const Event&)> show_;
  std::mutex mutex_;
};

}  // namespace octet
