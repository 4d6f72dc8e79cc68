#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cuda/lanes.cuh"
#include "octet/tensor/cuda/worker_sums.cuh"

namespace octet::cuda {
namespace {

template <class T>
struct Rows {
  std::int64_t rows, cols;
  const T *dy, *x;
  const float *w, *inv_rms;
  T* dx;
  float* dw_of_workers;
  bool accumulate;
};

// A block takes every gridDim.x-th row and adds up what they give to dw in shared memory.
template <class T, int threads, int N>
__global__ void __launch_bounds__(threads) rmsnorm_backward_kernel(const Rows<T> a) {
  extern __shared__ float dw[];
  for (std::int64_t c = threadIdx.x; c < a.cols; c += threads) dw[c] = 0;
  __syncthreads();
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const std::int64_t at = r * a.cols;
    ops::rmsnorm_backward_row(RowLanes<threads, N>{}, a.cols, a.dy + at, a.x + at, a.w, a.inv_rms[r], a.accumulate, a.dx + at, dw);
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < a.cols; c += threads) a.dw_of_workers[blockIdx.x * a.cols + c] = dw[c];
}

template <class T, int threads, int N>
void run(Queue queue, const Rows<T>& rows, int workers) {
  const int shared = int(rows.cols) * int(sizeof(float));
  allow_shared(rmsnorm_backward_kernel<T, threads, N>, shared);
  rmsnorm_backward_kernel<T, threads, N><<<unsigned(workers), threads, unsigned(shared), queue>>>(rows);
  launched("rmsnorm_backward");
}

}  // namespace

void rmsnorm_backward(Queue queue, const ops::RmsNormBackward& a, const Tensor& dw_of_workers) {
  const int workers = int(dw_of_workers.shape[0]);
  const std::int64_t cols = a.x.shape[1];
  if (cols == 0) return;
  dispatch<float, Bf16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const Rows<T> rows{a.x.shape[0], cols, a.dy.as<T>(), a.x.as<T>(), a.w.f32(), a.inv_rms.f32(), a.dx.as<T>(), dw_of_workers.f32(), a.accumulate};
    with_pack<T>(cols, [&]<int N>() {
      if (cols <= 1024) run<T, 128, N>(queue, rows, workers);
      else run<T, 256, N>(queue, rows, workers);
    });
  });
  add_worker_sums(queue, workers, cols, cols, dw_of_workers.f32(), a.dw.f32());
}

}  // namespace octet::cuda
