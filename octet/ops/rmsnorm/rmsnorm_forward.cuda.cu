#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/ops/sink/tile.cuh"

namespace octet::cuda {
namespace {

constexpr int row_threads = 256;

/// A warp a row.
template <class T, int N>
__global__ void rmsnorm_statistic_kernel(std::int64_t rows, std::int64_t cols, const T* x, float eps, float* inv_rms) {
  const std::int64_t row = (std::int64_t(blockIdx.x) * row_threads + threadIdx.x) / 32;
  if (row >= rows) return;
  const RowLanes<32, N> lanes;
  const float inv = ops::rmsnorm_statistic(lanes, cols, x + row * cols, eps);
  if (lanes.first()) inv_rms[row] = inv;
}

template <class T>
struct RmsNorm {
  static constexpr int outputs = 1;
  const T* x;
  const float *w, *inv_rms;
  std::int64_t cols;

  template <int N>
  __device__ __forceinline__ void make(std::int64_t row, std::int64_t col, Pack<N> (&out)[1]) const {
    ops::rmsnorm_scale_row(PackLanes<N>{col}, cols, x + row * cols, w, inv_rms[row], Kept<N>{&out[0]});
  }
};

}  // namespace

void rmsnorm_forward(Queue queue, const ops::RmsNormForward& a) {
  dispatch<float, Bf16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const std::int64_t rows = a.x.shape[0], cols = a.x.shape[1];
    if (rows > 0) {
      with_pack<T>(cols, [&]<int N>() {
        rmsnorm_statistic_kernel<T, N>
            <<<unsigned(ceil_div(rows * 32, row_threads)), row_threads, 0, queue>>>(rows, cols, a.x.as<T>(), a.eps, a.inv_rms.f32());
      });
      launched("rmsnorm_statistic_kernel");
    }
    fill_sink<T>(queue, a.y, RmsNorm<T>{a.x.as<T>(), a.w.f32(), a.inv_rms.f32(), cols}, packs_of_eight(a.x) && packs_of_eight(a.w));
  });
}

}  // namespace octet::cuda
