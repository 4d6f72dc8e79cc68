#include "octet/ops/columns/columns.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

void copy_columns(Queue queue, const ops::CopyColumns& a) {
  const std::size_t size = size_of(a.from.dtype), bytes = std::size_t(a.columns) * size, rows = std::size_t(a.from.shape[0]);
  if (bytes == 0 || rows == 0) return;
  require(cudaMemcpy2DAsync(a.to.as<std::byte>() + std::size_t(a.to_column) * size, std::size_t(a.to.shape[1]) * size,
                            a.from.as<std::byte>() + std::size_t(a.from_column) * size, std::size_t(a.from.shape[1]) * size, bytes, rows,
                            cudaMemcpyDeviceToDevice, queue),
          "copy of columns on the GPU");
}

}  // namespace octet::cuda
