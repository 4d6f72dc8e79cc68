#include "octet/tensor/cuda/side_queue.hpp"

#include <algorithm>

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {

// Higher priorities are smaller numbers.
Queue make_side_queue(int number) {
  facts();  // throws the reason if there is no GPU
  int least = 0, most = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
  const int of_main = least, lowest = std::max(most, of_main - 1);
  cudaStream_t queue;
  require(cudaStreamCreateWithPriority(&queue, cudaStreamNonBlocking, std::min(lowest, most + number - 1)), "cudaStreamCreate");
  return queue;
}

}  // namespace octet::cuda
