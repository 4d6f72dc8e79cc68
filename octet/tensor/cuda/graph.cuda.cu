#include "octet/tensor/cuda/graph.hpp"

#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

void Graph::begin(Queue queue) { require(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal), "begin of a CUDA graph"); }

Graph Graph::end(Queue queue) {
  cudaGraph_t recorded = nullptr;
  require(cudaStreamEndCapture(queue, &recorded), "end of a CUDA graph");
  Graph graph;
  const cudaError_t code = cudaGraphInstantiate(&graph.it_, recorded, 0);
  cudaGraphDestroy(recorded);
  require(code, "cudaGraphInstantiate");
  return graph;
}

void Graph::abandon(Queue queue) noexcept {
  cudaGraph_t recorded = nullptr;
  if (cudaStreamEndCapture(queue, &recorded) == cudaSuccess) cudaGraphDestroy(recorded);
  else cudaGetLastError();  // an error in between ends the recording, too
}

Graph::~Graph() {
  if (it_ != nullptr) cudaGraphExecDestroy(it_);
}

void Graph::launch(Queue queue) const { require(cudaGraphLaunch(it_, queue), "cudaGraphLaunch"); }

}  // namespace octet::cuda
