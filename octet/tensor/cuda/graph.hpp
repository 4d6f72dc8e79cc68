#pragma once

#include <utility>

#include "octet/tensor/cuda/queue.hpp"

struct CUgraphExec_st;

namespace octet::cuda {

/// A CUDA graph: recorded work of a queue that is launched any number of times with one call. Owns the graph.
class Graph {
 public:
  Graph() = default;
  /// Starts recording. Until end(), nothing may wait for the queue.
  static void begin(Queue);
  /// Throws DeviceError when something in between could not be recorded; the queue then works as before.
  static Graph end(Queue);
  /// Ends a recording and discards it, after an error.
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
