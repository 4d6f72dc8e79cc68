#include "octet/ops/clear_padding/clear_padding.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// A block per group. `row`: bytes, a multiple of 2.
__global__ void clear_padding_kernel(const std::int32_t* begin, const std::int32_t* count, std::int64_t row, std::uint16_t* x) {
  const std::int64_t first = (begin[blockIdx.x] + count[blockIdx.x]) * (row / 2), end = begin[blockIdx.x + 1] * (row / 2);
  for (std::int64_t i = first + threadIdx.x; i < end; i += threads) x[i] = 0;
}

}  // namespace

void clear_padding(Queue queue, const ops::RowGroups& groups, const Tensor& x) {
  clear_padding_kernel<<<unsigned(groups.size()), threads, 0, queue>>>(groups.begin.as<std::int32_t>(), groups.count.as<std::int32_t>(),
                                                                       x.shape[1] * std::int64_t(size_of(x.dtype)), x.as<std::uint16_t>());
  launched("clear_padding");
}

}  // namespace octet::cuda
