#include "octet/train/checkpoint/saver.hpp"

#include <chrono>

#include "octet/base/check.hpp"

namespace octet::train {

void CheckpointSaver::begin(std::int64_t step, std::function<void()> work) {
  check(!busy(), "checkpoint: a save is still under way");
  wait();
  done_ = false;
  result_ = {.step = step};
  thread_ = std::jthread([this, work = std::move(work)] {
    const auto begin = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const std::exception& e) {
      result_.error = e.what();
    }
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    done_ = true, done_.notify_all();
  });
}

std::optional<CheckpointSaver::Result> CheckpointSaver::result() {
  if (!thread_.joinable() || !done_) return std::nullopt;
  thread_.join();
  return std::move(result_);
}

void CheckpointSaver::wait() {
  if (thread_.joinable() && !done_) done_.wait(false);
}

}  // namespace octet::train
