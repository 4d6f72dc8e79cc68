#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
#include "octet/tensor/cuda/lanes.cuh"
#include "octet/tensor/cuda/worker_sums.cuh"

namespace octet::cuda {
namespace {

template <class T>
struct Rows {
  std::int64_t rows, cols;
  const T *dy, *x;
  const float *w, *mean, *inv_std;
  T* dx;
  float* sums_of_workers;  // [workers, 2 cols]: dw, then db
  bool accumulate;
};

// A block takes every gridDim.x-th row and adds up what they give to dw and db in shared memory.
template <class T, int threads, int N>
__global__ void __launch_bounds__(threads) layernorm_backward_kernel(const Rows<T> a) {
  extern __shared__ float sums[];
  for (std::int64_t c = threadIdx.x; c < 2 * a.cols; c += threads) sums[c] = 0;
  __syncthreads();
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const std::int64_t at = r * a.cols;
    const ops::LayerNormRow<float> row{a.mean[r], a.inv_std[r]};
    ops::layernorm_backward_row(RowLanes<threads, N>{}, a.cols, a.dy + at, a.x + at, a.w, row, a.accumulate, a.dx + at, sums, sums + a.cols);
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < 2 * a.cols; c += threads) a.sums_of_workers[blockIdx.x * 2 * a.cols + c] = sums[c];
}

template <class T, int threads, int N>
void run(Queue queue, const Rows<T>& rows, int workers) {
  const int shared = 2 * int(rows.cols) * int(sizeof(float));
  allow_shared(layernorm_backward_kernel<T, threads, N>, shared);
  layernorm_backward_kernel<T, threads, N><<<unsigned(workers), threads, unsigned(shared), queue>>>(rows);
  launched("layernorm_backward");
}

}  // namespace

void layernorm_backward(Queue queue, const ops::LayerNormBackward& a, const Tensor& sums_of_workers) {
  const int workers = int(sums_of_workers.shape[0]);
  const std::int64_t cols = a.x.shape[1];
  if (cols == 0) return;
  dispatch<float, Bf16>(a.x.dtype, "layernorm", [&]<class T>() {
    const Rows<T> rows{a.x.shape[0], cols, a.dy.as<T>(), a.x.as<T>(), a.w.f32(), a.mean.f32(), a.inv_std.f32(), a.dx.as<T>(), sums_of_workers.f32(), a.accumulate};
    with_pack<T>(cols, [&]<int N>() {
      if (cols <= 1024) run<T, 128, N>(queue, rows, workers);
      else run<T, 256, N>(queue, rows, workers);
    });
  });
  add_worker_sums(queue, workers, cols, 2 * cols, sums_of_workers.f32(), a.dw.f32());
  add_worker_sums(queue, workers, cols, 2 * cols, sums_of_workers.f32() + cols, a.db.f32());
}

}  // namespace octet::cuda
