#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace octet::python {

/// A thread that computes for others. It and the threads that it begins block all signals: a handler on a thread inside a GEMM of oneDNN
/// would overwrite the data of that. The caller waits, and can meanwhile handle signals. Primitives of oneDNN belong to a thread, so an
/// object that computes more than once keeps its own.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  /// Runs `work` in the thread and returns when it is done; throws its exception. `meanwhile` runs in the caller every 50 ms, and must not
  /// throw. Several callers come one after another.
  void run(const std::function<void()>& work, const std::function<void()>& meanwhile);
  /// From `work`: runs `call` in the thread that waits in run(), and throws its exception. One call at a time.
  void in_caller(const std::function<void()>& call);

 private:
  using Job = const std::function<void()>*;
  void serve(const std::stop_token&);

  std::mutex turn_, mutex_;
  std::condition_variable_any changed_;
  Job work_ = nullptr, call_ = nullptr;
  std::exception_ptr failure_, call_failure_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace octet::python
