#pragma once

#include <utility>

#include "octet/tensor/cuda/queue.hpp"

struct CUgraphExec_st;

namespace octet::cuda {

/// Work that was put into a queue, recorded instead of done, to be done any number of times with one call. Owns the record.
class Graph {
 public:
  Graph() = default;
  /// From now on the queue records. Until end(), nothing may wait for it.
  static void begin(Queue);
  /// Throws DeviceError when something in between could not be recorded; the queue then works as before.
  static Graph end(Queue);
  /// The same where the record is not wanted, since putting work into the queue failed.
  static void abandon(Queue) noexcept;
  ~Graph();
  Graph(Graph&& other) noexcept : it_(std::exchange(other.it_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(it_, other.it_);
    return *this;
  }

  /// Puts the work into the queue. Throws DeviceError when CUDA refuses.
  void launch(Queue) const;

 private:
  CUgraphExec_st* it_ = nullptr;
};

}  // namespace octet::cuda
