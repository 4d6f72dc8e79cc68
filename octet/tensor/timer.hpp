#pragma once

#include <chrono>

#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// How long a stream's device takes for work: on the CPU by a steady clock, on a GPU by marks in its queue, so that neither launching nor
/// waiting is counted unless the GPU has to wait for it. Work of one start and stop should be many launches. Nothing on the null device.
class Timer {
 public:
  explicit Timer(Stream&);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// From here, behind all work that the stream was given before.
  void start();
  /// Seconds since start(); returns when that work is done.
  double stop();

 private:
  Stream& stream_;
  std::chrono::steady_clock::time_point start_;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace octet
