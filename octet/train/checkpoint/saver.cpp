#include "octet/train/checkpoint/saver.hpp"

#include <chrono>

#include "octet/base/check.hpp"

namespace octet::train {

void CheckpointSaver::save(Snapshot snapshot) {
  check(!busy(), "checkpoint: a save is still under way");
  wait();
  done_ = false;
  result_ = {.step = snapshot.step};
  thread_ = std::jthread([this, snapshot = std::move(snapshot)] {
    write(snapshot);
    done_ = true, done_.notify_all();
  });
}

void CheckpointSaver::write(const Snapshot& snapshot) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    log_.make_durable();
    store_.write(snapshot);
    store_.retain(snapshot.step, keep_);
  } catch (const std::exception& e) {
    result_.error = e.what();
  }
  result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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
