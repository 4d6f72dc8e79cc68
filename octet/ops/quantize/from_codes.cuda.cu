#include "octet/ops/quantize/from_codes.kernels.hpp"
#include "octet/ops/quantize/cuda/codes.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int side = 128, eights = side / 8, turning_threads = eights * eights;

/// A block turns 128 x 128 bytes, 8 x 8 per thread. Loads and stores are of 128 bytes of a row; in shared memory the eights of a column are
/// shuffled by their column, so that no bank is asked twice.
__global__ void __launch_bounds__(turning_threads) transpose_bytes_kernel(int rows, int cols, const std::uint8_t* from, std::uint8_t* to) {
  __shared__ uint2 turned[side][eights];
  const int x = int(threadIdx.x) % eights, y = int(threadIdx.x) / eights;
  const int row0 = int(blockIdx.y) * side, col0 = int(blockIdx.x) * side, row = row0 + y * 8, col = col0 + x * 8;
  uint2 in[8], out[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool inside = row + i < rows && col < cols;
    in[i] = inside ? *reinterpret_cast<const uint2*>(from + std::int64_t(row + i) * cols + col) : make_uint2(0, 0);
  }
  turn_eight(in, out);
#pragma unroll
  for (int j = 0; j < 8; ++j) turned[x * 8 + j][y ^ x] = out[j];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int c = k * eights + y;  // of the tile
    if (col0 + c < cols && row0 + x * 8 < rows)
      *reinterpret_cast<uint2*>(to + std::int64_t(col0 + c) * rows + row0 + x * 8) = turned[c][x ^ (c / 8)];
  }
}

__global__ void transpose_descales_kernel(int rows, int cols, int width_from, int width_to, const float* from, float* to) {
  const int i = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
  const int line = i / width_to, at = i % width_to;
  if (line < cols) to[i] = at < rows ? from[at * width_from + line] : 1.0f;
}

}  // namespace

void transpose_bytes(Queue queue, const Tensor& from, const Tensor& to) {
  if (from.count() == 0) return;
  const dim3 grid(unsigned(ceil_div(from.shape[1], side)), unsigned(ceil_div(from.shape[0], side)));
  transpose_bytes_kernel<<<grid, turning_threads, 0, queue>>>(int(from.shape[0]), int(from.shape[1]), from.u8(), to.u8());
  launched("transpose_bytes_kernel");
}

void transpose_descales(Queue queue, std::int64_t rows, std::int64_t cols, const Tensor& from, const Tensor& to) {
  const std::int64_t n = to.count();
  if (n == 0) return;
  transpose_descales_kernel<<<unsigned(ceil_div(n, 256)), 256, 0, queue>>>(int(rows), int(cols), int(from.shape[1]), int(to.shape[1]),
                                                                           from.f32(), to.f32());
  launched("transpose_descales_kernel");
}

}  // namespace octet::cuda
