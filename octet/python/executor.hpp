#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "octet/python/aside.hpp"
#include "octet/tensor/stream_event.hpp"

namespace octet::python {

/// Runs ops on tensors in memory of other libraries, such as PyTorch's: one per device of the process, with a stream and its scratch. On a
/// CPU it has a thread (Aside). On a GPU work goes into the caller's queue: nothing waits on the host, and there is no event between
/// kernels. Threads come one after another, without the GIL.
class Executor {
 public:
  /// That of a CPU, or of the current GPU of the calling thread, whose number among those of CUDA is `index`. It lives as long as the
  /// process. Throws DeviceError where there is no GPU that works.
  static Executor& of(Device, int index);
  ~Executor();

  /// work(stream), after all work that the caller's queue (a cudaStream_t; 0: CUDA's default one; unused on a CPU) has now and before
  /// all that it gets later. Work leaves no scratch allocated. Throws its exception.
  void run(std::uintptr_t queue, const std::function<void(Stream&)>& work);
  const Target& target() const { return target_; }
  Device device() const { return device_; }

 private:
  class Turn;
  Executor(Device, const Target&);

  const Device device_;
  const Target target_;
  std::mutex turn_;
  std::unique_ptr<Aside> aside_;  // CPU
  std::unique_ptr<Stream> stream_;
  cuda::Queue last_ = nullptr;  // GPU: of the last caller
  cuda::Event done_ = nullptr;  // after its work
};

}  // namespace octet::python
