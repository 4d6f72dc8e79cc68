#include <initializer_list>

#include "octet/ops/norm_parts/norm_parts.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int warps = 4, threads = 256;

template <class T>
struct Columns {
  const T* first;
  std::int64_t stride;
  __device__ __forceinline__ const T* row(std::int64_t t) const { return first + t * stride; }
};
template <class T>
Columns<T> columns_of(const ops::ColumnsOf& x) {
  return {x.of.as<T>() + x.first, x.of.shape[1]};
}

__device__ __forceinline__ std::int64_t row_of_warp() { return std::int64_t(blockIdx.x) * warps + threadIdx.x / 32; }
unsigned blocks_of(std::int64_t rows) { return unsigned(ceil_div(rows, warps)); }

// A warp for each row.
template <class T, int N>
__global__ void __launch_bounds__(32 * warps) norm_squares_kernel(std::int64_t rows, std::int64_t columns, Columns<T> x, float* sums) {
  const std::int64_t t = row_of_warp();
  if (t >= rows) return;
  const RowLanes<32, N> lanes;
  const float sum = ops::rmsnorm_squares(lanes, columns, x.row(t));
  if (lanes.first()) sums[t] = sum;
}

template <class T, int N>
__global__ void __launch_bounds__(32 * warps) norm_products_kernel(std::int64_t rows, std::int64_t columns, Columns<T> dy, Columns<T> x,
                                                                   const float* w, float offset, const float* inv_rms, float* sums) {
  const std::int64_t t = row_of_warp();
  if (t >= rows) return;
  const RowLanes<32, N> lanes;
  const float sum = ops::rmsnorm_products(lanes, columns, dy.row(t), x.row(t), w, offset, inv_rms[t]);
  if (lanes.first()) sums[t] = sum;
}

template <class Lanes>
__global__ void __launch_bounds__(threads) norm_factors_kernel(std::int64_t rows, std::int64_t columns, float eps, float* sums) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t < rows) sums[t] = ops::rmsnorm_factor(Lanes{}, sums[t], columns, eps);
}

__global__ void __launch_bounds__(threads) norm_means_kernel(std::int64_t rows, std::int64_t columns, float* sums) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t < rows) sums[t] = sums[t] / float(columns);
}

// Divisible by the values of a pack if every row of these columns begins at a multiple of them, and has complete ones.
std::int64_t alignment_of(std::int64_t columns, std::initializer_list<ops::ColumnsOf> of) {
  for (const ops::ColumnsOf& x : of) columns |= x.first | x.of.shape[1];
  return columns;
}

}  // namespace

void norm_squares(Queue queue, const ops::NormSquares& a) {
  const std::int64_t rows = a.x.of.shape[0];
  if (rows == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.of.dtype, "norm_squares", [&]<class T>() {
    with_pack<T>(alignment_of(a.columns, {a.x}), [&]<int N>() {
      norm_squares_kernel<T, N><<<blocks_of(rows), 32 * warps, 0, queue>>>(rows, a.columns, columns_of<T>(a.x), a.sums.f32());
    });
  });
  launched("norm_squares");
}

void norm_products(Queue queue, const ops::NormProducts& a) {
  const std::int64_t rows = a.x.of.shape[0], columns = a.w.count();
  if (rows == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.of.dtype, "norm_products", [&]<class T>() {
    with_pack<T>(alignment_of(columns, {a.dy, a.x}), [&]<int N>() {
      norm_products_kernel<T, N><<<blocks_of(rows), 32 * warps, 0, queue>>>(rows, columns, columns_of<T>(a.dy), columns_of<T>(a.x),
                                                                            a.w.f32(), a.offset, a.inv_rms.f32(), a.sums.f32());
    });
  });
  launched("norm_products");
}

void norm_factors(Queue queue, const ops::NormOfSums& a) {
  const std::int64_t rows = a.sums.count();
  if (rows == 0) return;
  norm_factors_kernel<RowLanes<32, 1>><<<unsigned(ceil_div(rows, threads)), threads, 0, queue>>>(rows, a.columns, a.eps, a.sums.f32());
  launched("norm_factors");
}

void norm_means(Queue queue, const ops::NormOfSums& a) {
  const std::int64_t rows = a.sums.count();
  if (rows == 0) return;
  norm_means_kernel<<<unsigned(ceil_div(rows, threads)), threads, 0, queue>>>(rows, a.columns, a.sums.f32());
  launched("norm_means");
}

}  // namespace octet::cuda
