#include "octet/comm/mpi/progress.hpp"

#include <algorithm>
#include <chrono>

#include "octet/base/check.hpp"
#include "octet/comm/mpi/module.hpp"

namespace octet::comm {
namespace {

constexpr std::chrono::microseconds pause{200};
constexpr int tests = 4;  // at once, each of which moves some pieces

void test(Progress::State& s) {
  for (int i = 0; i < tests && s.request != nullptr; ++i) {
    int done = 0;
    s.code = mpi_transport().test(s.request, &done);
    if (done != 0 || s.code != 0) s.request = nullptr;
  }
}

}  // namespace

std::int64_t Progress::add(MpiRequest* request) {
  const std::lock_guard lock(mutex_);
  transfers_[++last_] = {request, 0};
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  added_.notify_one();
  return last_;
}

Progress::State Progress::take(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto at = transfers_.extract(number);
  check(!at.empty(), "MPI: transfer {} is not under way", number);
  return at.mapped();
}

void Progress::forget() {
  const std::lock_guard lock(mutex_);
  transfers_.clear();
}

void Progress::run(const std::stop_token& stop) {
  const auto under_way = [this] { return std::ranges::any_of(transfers_, [](const auto& t) { return t.second.request != nullptr; }); };
  std::unique_lock lock(mutex_);
  while (added_.wait(lock, stop, under_way) && !stop.stop_requested()) {
    for (auto& [number, state] : transfers_) test(state);
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
  }
}

}  // namespace octet::comm
