#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include <functional>
#include <string>

namespace octet::train {

/// Writes checkpoints on a thread of its own, one at a time. For one caller.
class CheckpointSaver {
 public:
  /// How a save ended.
  struct Result {
    std::int64_t step = 0;
    std::string error;  // empty: all of it is done
    double seconds = 0;
  };
  bool busy() const { return thread_.joinable() && !done_; }
  /// Begins work that belongs to a step; not while busy(). Its exception becomes Result::error.
  void begin(std::int64_t step, std::function<void()> work);
  /// The result of the last work, if it ended since the last call.
  std::optional<Result> result();
  /// Until no work is under way.
  void wait();

 private:
  Result result_;
  std::atomic<bool> done_{false};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace octet::train
