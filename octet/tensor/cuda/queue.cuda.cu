#include "octet/tensor/cuda/queue.hpp"

#include "octet/tensor/backend.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {

void not_built() { throw ContractError("this program has a CUDA backend"); }

Queue make_queue(bool first) {
  facts();  // throws the reason if there is no GPU
  int least = 0, most = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t queue;
  require(cudaStreamCreateWithPriority(&queue, cudaStreamNonBlocking, first ? most : least), "cudaStreamCreate");
  return queue;
}

void copy(Queue queue, const void* from, void* to, std::size_t bytes) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue), "copy on the GPU");
}

void clear(Queue queue, void* at, std::size_t bytes) { require(cudaMemsetAsync(at, 0, bytes, queue), "cudaMemsetAsync"); }

}  // namespace octet::cuda
