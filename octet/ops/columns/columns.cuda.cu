#include "octet/ops/columns/columns.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

void copy_columns(Queue queue, const ops::CopyColumns& a) {
  constexpr std::size_t most = 0x7FFFFFFF;  // bytes of a row in one copy of several
  const std::size_t size = size_of(a.from.dtype), bytes = std::size_t(a.columns) * size, rows = std::size_t(a.from.shape[0]);
  const std::size_t to_row = std::size_t(a.to.shape[1]) * size, from_row = std::size_t(a.from.shape[1]) * size;
  if (bytes == 0 || rows == 0) return;
  std::byte* const to = a.to.as<std::byte>() + std::size_t(a.to_column) * size;
  const std::byte* const from = a.from.as<std::byte>() + std::size_t(a.from_column) * size;
  if (rows > 1 && to_row <= most && from_row <= most)
    return require(cudaMemcpy2DAsync(to, to_row, from, from_row, bytes, rows, cudaMemcpyDeviceToDevice, queue),
                   "copy of columns on the GPU");
  for (std::size_t t = 0; t < rows; ++t)
    require(cudaMemcpyAsync(to + t * to_row, from + t * from_row, bytes, cudaMemcpyDeviceToDevice, queue), "copy of columns on the GPU");
}

}  // namespace octet::cuda
