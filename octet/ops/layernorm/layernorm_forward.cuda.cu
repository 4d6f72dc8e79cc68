#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
#include "octet/ops/sink/tile.cuh"

namespace octet::cuda {
namespace {

constexpr int row_threads = 256;

/// A warp a row.
template <class T, int N>
__global__ void layernorm_statistics_kernel(std::int64_t rows, std::int64_t cols, const T* x, float eps, float* mean, float* inv_std) {
  const std::int64_t row = (std::int64_t(blockIdx.x) * row_threads + threadIdx.x) / 32;
  if (row >= rows) return;
  const RowLanes<32, N> lanes;
  const auto found = ops::layernorm_statistics(lanes, cols, x + row * cols, eps);
  if (lanes.first()) mean[row] = found.mean, inv_std[row] = found.inv_std;
}

template <class T>
struct LayerNorm {
  static constexpr int outputs = 1;
  const T* x;
  const float *w, *b, *mean, *inv_std;
  std::int64_t cols;

  template <int N>
  __device__ __forceinline__ void make(std::int64_t row, std::int64_t col, Pack<N> (&out)[1]) const {
    const ops::LayerNormRow<float> statistics{mean[row], inv_std[row]};
    ops::layernorm_scale_row(PackLanes<N>{col}, cols, x + row * cols, w, b, statistics, Kept<N>{&out[0]});
  }
};

}  // namespace

void layernorm_forward(Queue queue, const ops::LayerNormForward& a) {
  dispatch<float, Bf16>(a.x.dtype, "layernorm", [&]<class T>() {
    const std::int64_t rows = a.x.shape[0], cols = a.x.shape[1];
    float *const mean = a.mean.f32(), *const inv_std = a.inv_std.f32();
    if (rows > 0) {
      with_pack<T>(cols, [&]<int N>() {
        const unsigned blocks = unsigned(ceil_div(rows * 32, row_threads));
        layernorm_statistics_kernel<T, N><<<blocks, row_threads, 0, queue>>>(rows, cols, a.x.as<T>(), a.eps, mean, inv_std);
      });
      launched("layernorm_statistics_kernel");
    }
    const bool aligned = packs_of_eight(a.x) && packs_of_eight(a.w) && packs_of_eight(a.b);
    fill_sink<T>(queue, a.y, LayerNorm<T>{a.x.as<T>(), a.w.f32(), a.b.f32(), mean, inv_std, cols}, aligned);
  });
}

}  // namespace octet::cuda
