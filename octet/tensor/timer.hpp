#pragma once

#include <chrono>

#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// Time of work on a stream's device: on the CPU by a steady clock, on a GPU by events in its queue, so that launches and waits count only
/// if the GPU has to wait for them. Work of one start and stop should be many launches. Nothing on the null device.
class Timer {
 public:
  explicit Timer(Stream&);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Starts after all earlier work of the stream.
  void start();
  /// Seconds since start(); returns when that work is done.
  double stop();

 private:
  Stream& stream_;
  std::chrono::steady_clock::time_point start_;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace octet
