#include "octet/tensor/cuda/queue.hpp"

#include "octet/tensor/backend.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {

void not_built() { throw ContractError("this program has a CUDA backend"); }

Queue make_queue() {
  facts();  // says why where there is no GPU
  cudaStream_t queue;
  require(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), "cudaStreamCreate");
  return queue;
}

void end_queue(Queue queue) {
  cudaStreamSynchronize(queue);
  cudaStreamDestroy(queue);
}

void wait(Queue queue) { require(cudaStreamSynchronize(queue), "work on the GPU"); }

void copy(Queue queue, const void* from, void* to, std::size_t bytes) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, queue), "copy on the GPU");
}

void clear(Queue queue, void* at, std::size_t bytes) { require(cudaMemsetAsync(at, 0, bytes, queue), "cudaMemsetAsync"); }

void upload(Queue queue, const void* host, void* to, std::size_t bytes) {
  require(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, queue), "copy to the GPU");
  wait(queue);
}

void download(Queue queue, const void* from, void* host, std::size_t bytes) {
  require(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, queue), "copy from the GPU");
  wait(queue);
}

}  // namespace octet::cuda
