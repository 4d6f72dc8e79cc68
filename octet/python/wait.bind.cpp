#include "octet/python/wait.hpp"

#include <nanobind/nanobind.h>

#include <atomic>

#include "octet/train/run/ranks/stop.hpp"

namespace octet::python {
namespace {

/// One of the calls in progress. The first one withdraws a request that stopped earlier ones.
class InProgress {
 public:
  InProgress() {
    if (count_++ == 0) train::withdraw_requests();
  }
  ~InProgress() { --count_; }

 private:
  static inline std::atomic<int> count_ = 0;
};

/// The exception that a handler of Python raised, the first one of a call.
class Interrupt {
 public:
  void check() {
    const nanobind::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() == 0) return;
    try {
      nanobind::raise_python_error();
    } catch (...) {
      if (!raised_) raised_ = std::current_exception();
    }
    train::request_stop();
  }
  void raise() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
};

}  // namespace

void wait_for(Aside& aside, const std::function<void()>& work) {
  const InProgress counted;
  Interrupt interrupt;
  std::exception_ptr failure;
  {
    const nanobind::gil_scoped_release unlocked;
    try {
      aside.run(work, [&] { interrupt.check(); });
    } catch (...) {
      failure = std::current_exception();
    }
  }
  interrupt.raise();
  if (failure) std::rethrow_exception(failure);
}

void wait_for(const std::function<void()>& work) {
  Aside aside;
  wait_for(aside, work);
}

}  // namespace octet::python
