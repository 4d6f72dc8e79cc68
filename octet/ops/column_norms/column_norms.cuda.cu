#include "octet/ops/column_norms/column_norms.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int warps = 4;

struct Range {
  const float* w;
  int first, count, width;
};

// A warp for each group of a row.
template <class T, int N>
__global__ void column_norms_kernel(std::int64_t groups, std::int64_t columns, Range a, Range b, float eps, float offset, T* x) {
  let_later_work_begin();
  wait_for_earlier_work();
  const std::int64_t i = std::int64_t(blockIdx.x) * warps + threadIdx.x / 32, row = i / (a.count + b.count);
  if (i >= groups) return;
  const int group = int(i - row * (a.count + b.count)), of_b = group - a.count;
  const Range r = of_b < 0 ? a : b;
  T* const v = x + row * columns + r.first + std::int64_t(of_b < 0 ? group : of_b) * r.width;
  const RowLanes<32, N> lanes;
  ops::rmsnorm_scale_row(lanes, r.width, v, r.w, offset, ops::rmsnorm_statistic(lanes, r.width, v, eps), v);
}

Range range_of(const ops::NormedColumns& r) { return {r.w.f32(), int(r.first), int(r.count), int(r.w.shape[0])}; }

}  // namespace

void column_norms(Queue queue, const ops::ColumnNorms& a) {
  const Range q = range_of(a.ranges[0]), k = range_of(a.ranges[1]);
  const std::int64_t rows = a.x.shape[0], columns = a.x.shape[1], groups = rows * (q.count + k.count);
  if (groups == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.dtype, "column_norms", [&]<class T>() {
    constexpr int widest = 16 / int(sizeof(T));
    const bool aligned = (columns | q.first | q.width | k.first | k.width) % widest == 0;
    with_pack<T>(aligned ? widest : 1, [&]<int N>() {
      const Blocks blocks{.grid = dim3(unsigned(ceil_div(groups, warps))), .threads = 32 * warps, .early = rows <= early_rows};
      launch_early("column_norms_kernel", column_norms_kernel<T, N>, blocks, queue, groups, columns, q, k, a.eps, a.offset, a.x.as<T>());
    });
  });
}

}  // namespace octet::cuda
