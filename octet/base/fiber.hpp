#pragma once

#include <exception>
#include <functional>
#include <memory>

namespace octet {

/// A function with a stack of its own, which runs on the thread that resumes it until it yields or ends. So code that was written for one
/// task may stop in the middle of any call. Resumed and destroyed by one thread. It must not yield within a catch block.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  /// A body that has yielded ends by an exception that no handler for std::exception catches, so that its objects are destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it yields or ends. Throws its exception, if one left it.
  void resume();
  /// From within the body: resume() returns.
  void yield();
  bool ended() const { return ended_; }

 private:
  struct Machine;
  static void enter();
  void run();

  std::function<void()> body_;
  std::unique_ptr<Machine> machine_;
  std::exception_ptr error_;
  bool begun_ = false, ended_ = false, abandoned_ = false;
};

}  // namespace octet
