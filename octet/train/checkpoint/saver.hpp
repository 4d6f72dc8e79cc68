#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "octet/telemetry/metrics_writer.hpp"
#include "octet/train/checkpoint/store.hpp"

namespace octet::train {

/// Writes checkpoints on a thread of its own, one at a time. For one caller.
class CheckpointSaver {
 public:
  /// How a save ended.
  struct Result {
    std::int64_t step = 0;
    std::string error;  // empty: the checkpoint is complete
    double seconds = 0;
  };
  /// Before a checkpoint gets its name, `log` is made durable, since the state holds its length. It must outlive this.
  CheckpointSaver(CheckpointStore store, std::int64_t keep, telemetry::MetricsWriter& log)
      : store_(std::move(store)), keep_(keep), log_(log) {}

  bool busy() const { return thread_.joinable() && !done_; }
  /// Begins to write; not while busy().
  void save(Snapshot);
  /// The result of the last save, if it ended since the last call.
  std::optional<Result> result();
  /// Until no save is under way.
  void wait();

 private:
  void write(const Snapshot&);

  CheckpointStore store_;
  std::int64_t keep_;
  telemetry::MetricsWriter& log_;
  Result result_;
  std::atomic<bool> done_{false};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace octet::train
