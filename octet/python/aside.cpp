#include "octet/python/aside.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace octet::python {
namespace {

std::exception_ptr failure_of(const std::function<void()>& job) {
  try {
    job();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Aside::Aside() {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits it
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Aside::~Aside() = default;

void Aside::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return work_ != nullptr; })) {
    const Job work = work_;
    lock.unlock();
    const std::exception_ptr failure = failure_of(*work);
    lock.lock();
    failure_ = failure, work_ = nullptr;
    changed_.notify_all();
  }
}

void Aside::run(const std::function<void()>& work, const std::function<void()>& meanwhile) {
  const std::scoped_lock turn(turn_);
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  while (work_ != nullptr) {
    changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return work_ == nullptr || call_ != nullptr; });
    if (work_ == nullptr) break;
    const Job call = call_;
    lock.unlock();
    if (call != nullptr) call_failure_ = failure_of(*call);
    else meanwhile();
    lock.lock();
    if (call != nullptr) call_ = nullptr, changed_.notify_all();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Aside::in_caller(const std::function<void()>& call) {
  std::unique_lock lock(mutex_);
  call_ = &call;
  changed_.notify_all();
  changed_.wait(lock, [this] { return call_ == nullptr; });
  if (call_failure_) std::rethrow_exception(std::exchange(call_failure_, nullptr));
}

}  // namespace octet::python
