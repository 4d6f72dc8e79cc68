#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

// Strips of rows are summed side by side into `parts`, then the parts of each column: the order of all additions is given by the shape.

namespace octet::cuda {
namespace {

constexpr int lanes = 16;  // threads side by side in a strip, each with a pack of columns
constexpr int depth = 16;  // threads that share a strip's rows

template <class T, int N>
__global__ void strip_kernel(std::int64_t rows, std::int64_t columns, std::int64_t strip, const T* x, float* parts) {
  __shared__ float sums[depth][lanes * N];
  const int lane = threadIdx.x, level = threadIdx.y;
  const std::int64_t column = (std::int64_t(blockIdx.x) * lanes + lane) * N, begin = blockIdx.y * strip,
                     end = begin + strip < rows ? begin + strip : rows;
  Pack<N> sum = Pack<N>::all(0.0f);
  if (column < columns)
    for (std::int64_t r = begin + level; r < end; r += depth) sum = sum + load<N>(x, r * columns + column);
#pragma unroll
  for (int i = 0; i < N; ++i) sums[level][lane * N + i] = sum.v[i];
  __syncthreads();
  const std::int64_t first = std::int64_t(blockIdx.x) * lanes * N;
  for (int c = level * lanes + lane; c < lanes * N && first + c < columns; c += lanes * depth) {
    float total = 0;
    for (int i = 0; i < depth; ++i) total += sums[i][c];
    parts[blockIdx.y * columns + first + c] = total;
  }
}

__global__ void parts_kernel(std::int64_t strips, std::int64_t columns, const float* parts, float* db) {
  const std::int64_t c = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float total = 0;
  for (std::int64_t s = 0; s < strips; ++s) total += parts[s * columns + c];
  db[c] += total;
}

}  // namespace

void add_column_sums(Queue queue, const Tensor& x, const Tensor& db, const Tensor& parts) {
  const std::int64_t rows = x.shape[0], columns = x.shape[1], strips = parts.shape[0], strip = ceil_div(rows, strips);
  if (x.count() == 0) return;
  dispatch<float, Bf16, Fp16>(x.dtype, "add_column_sums", [&]<class T>() {
    with_pack<T>(columns, [&]<int N>() {
      const dim3 grid(unsigned(ceil_div(columns, lanes * N)), unsigned(strips));
      strip_kernel<T, N><<<grid, dim3(lanes, depth), 0, queue>>>(rows, columns, strip, x.as<T>(), parts.f32());
    });
  });
  parts_kernel<<<unsigned(ceil_div(columns, 256)), 256, 0, queue>>>(strips, columns, parts.f32(), db.f32());
  launched("add_column_sums");
}

}  // namespace octet::cuda
