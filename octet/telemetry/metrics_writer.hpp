#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "octet/base/descriptor.hpp"
#include "octet/telemetry/event.hpp"
#include "octet/tensor/state.hpp"

namespace octet::telemetry {

/// Appends events to a run's `metrics.jsonl`, one write() per line. A concurrent reader, or one after the process was killed, sees complete
/// lines and at most one torn last line. Lines reach the disk (fdatasync) every `sync_every` and with the last event, so that a
/// power loss costs no more than that. Thread-safe. An advisory lock allows one process per file.
class MetricsWriter {
 public:
  /// Opens or creates `path`; a torn last line of an earlier process is cut off. Without a path it writes nothing: for ranks other than the
  /// first.
  /// Throws IoError, also when another process holds the file.
  explicit MetricsWriter(std::string path, std::chrono::seconds sync_every = std::chrono::seconds(10));
  ~MetricsWriter();

  /// If the disk is full, lines wait in memory, up to 16 MiB, and are written with the next one; the file ends with a complete line
  /// meanwhile. Throws IoError beyond 16 MiB, at the last event, or on another error.
  void emit(const Event&);
  /// From now on every event is also passed to `show`, after its line was written or queued; one at a time, in the order of the lines.
  void mirror(std::function<void(const Event&)> show);

  /// The step of the last step event in the first `bytes`, 0 if there is none; none if they have too long lines to find it. Throws
  /// DataError if they do not end with a line, IoError.
  std::optional<std::int64_t> last_step(std::int64_t bytes);
  /// Truncates to the first `bytes`, which end with a line. Throws DataError when there are fewer, IoError.
  void cut_back(std::int64_t bytes);
  /// Bytes of complete lines so far; restoring truncates the file to them. Throws IoError while lines wait for disk space.
  void visit_state(StateVisitor&);
  /// Returns when every line so far is on the disk; for any thread. Throws IoError.
  void make_durable();

 private:
  int write_waiting();
  [[noreturn]] void refuse_write(int reason);
  void sync();

  std::string path_;
  Descriptor file_;
  std::int64_t end_ = 0;  // of the last complete line
  std::string waiting_;   // complete lines that are not in the file yet
  std::chrono::seconds sync_every_;
  std::chrono::steady_clock::time_point last_sync_;
  std::function<void(const Event&)> show_;
  std::mutex mutex_;
};

}  // namespace octet::telemetry
