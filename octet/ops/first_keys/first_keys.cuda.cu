#include "octet/ops/first_keys/first_keys.kernels.hpp"
#include "octet/ops/first_keys/first_keys.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

__global__ void first_keys_kernel(std::int64_t tokens, const std::int32_t* starts, std::int64_t window, std::int64_t sequence,
                                  SequencePart part, std::int32_t* keys) {
  const std::int64_t t = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t < tokens) keys[t] = ops::first_key(t, starts, window, sequence, part);
}

}  // namespace

void first_keys(Queue queue, const ops::FirstKeys& a) {
  constexpr int threads = 256;
  const std::int64_t tokens = a.keys.count();
  if (tokens == 0) return;
  first_keys_kernel<<<unsigned(ceil_div(tokens, threads)), threads, 0, queue>>>(tokens, a.starts.as<std::int32_t>(), a.window, a.sequence,
                                                                                a.part, a.keys.as<std::int32_t>());
  launched("first_keys_kernel");
}

}  // namespace octet::cuda
