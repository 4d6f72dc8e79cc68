#pragma once

// Only for files of this op that use cuDNN: the loaded library, and graphs built with it.

#include <cudnn_frontend.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

namespace fe = cudnn_frontend;

/// Throws DeviceError if e is an error.
void require(fe::error_t e, const char* what);

/// cuDNN's version and handle; of one thread at a time.
struct CudnnLibrary {
  cudnnHandle_t handle = nullptr;
  std::string version, why_not;

  CudnnLibrary();
};
/// Loaded on first use.
CudnnLibrary& cudnn_library();

/// A graph with a plan, and the bytes that it needs.
struct BuiltGraph {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t bytes = 0;
};
/// Throws DeviceError if cuDNN has no plan for the graph. A fraction of a second.
BuiltGraph built(const std::shared_ptr<fe::graph::Graph>&, const char* what);
/// Runs it in the queue, with each tensor of an identifier at an address.
void run_graph(Queue, fe::graph::Graph&, std::unordered_map<std::int64_t, void*>& at, void* workspace, const char* what);

}  // namespace octet::cuda
