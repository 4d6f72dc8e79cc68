#include <cooperative_groups.h>

#include "octet/ops/gated_gemm/gated_gemm.kernels.hpp"
#include "octet/ops/gemm/few_rows.cuh"
#include "octet/ops/quantize/cuda/few_rows.cuh"
#include "octet/ops/swiglu/swiglu.math.hpp"

// A product of one row by a matrix whose halves belong together. A warp reads rows of both halves, so its block has pairs of sums, and
// makes the outputs of them. Scales of blocks of columns are those of a cluster's blocks, or of a part of them.

namespace octet::cuda {
namespace {

namespace groups = cooperative_groups;
namespace product = row_products;

constexpr int columns = product::columns_of<1>, pairs = columns / 2, outputs = product::warps * pairs, cluster_blocks = 8;
static_assert(outputs == 16 && outputs * cluster_blocks == ops::gated_columns);

struct Out {
  TileJob codes;
  Bf16* plain;  // may be null
  ops::Gate gate;
};

// Lanes of a row body that has one value.
struct OneLane {
  using Value = Pack<1>;

  template <class F>
  __device__ __forceinline__ void each(std::int64_t, F&& f) const {
    f(0);
  }
  __device__ __forceinline__ Value load(const float* p, std::int64_t) const { return Value::all(*p); }
  __device__ __forceinline__ void store(float* p, std::int64_t, const Value& v) const { *p = v.v[0]; }
};

__device__ __forceinline__ float rounded(float x) { return to_float(to_bf16(x)); }

/// Codes of a block's outputs, by the first two lanes of its first warp. All threads of a cluster call where scales are of blocks.
__device__ __forceinline__ void encode_outputs(const TileJob& codes, const Bf16* made, int first, float* own) {
  const int thread = int(threadIdx.x), row = 0;
  const bool has = thread < outputs / 8;
  const auto v = has ? Eight<Bf16>::at(made + thread * 8) : Eight<Bf16>{};
  if (codes.row.part == Part::constant) {
    if (has) few_rows::put_codes(codes, row, first + thread * 8, v, fabsf(*codes.row.scale));
    return;
  }
  const groups::cluster_group cluster = groups::this_cluster();
  Tops<Bf16> tops;
  tops.raise(v);
  const float own_top = thread < 32 ? warp_max(tops.top()) : 0;
  if (thread == 0) *own = own_top;
  cluster.sync();
  const int rank = int(cluster.block_rank()), together = (1 << codes.row.shift) / outputs, begin = rank / together * together;
  float top = 0;
  for (int i = 0; i < together; ++i) top = fmaxf(*cluster.map_shared_rank(own, begin + i), top);
  cluster.sync();  // and all have read it
  const auto s = block_scale(top, rule_of(codes, codes.row));
  if (has) few_rows::put_codes(codes, row, first + thread * 8, v, s.scale);
  if (thread == 0 && rank == begin) put_descale(codes.row, row, first >> codes.row.shift, s);
  if (blockIdx.x == 0) fill_padding(codes.row);
}

template <class T, product::Scaling scaling>
__global__ void __launch_bounds__(32 * product::warps, product::blocks_at_once<1, true>)
    gated_row_kernel(const __grid_constant__ product::Job job, const __grid_constant__ Out out) {
  __shared__ float sums[product::warps * columns], own;
  __shared__ __align__(16) Bf16 made[outputs];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, first = int(blockIdx.x) * outputs;
  const product::Part<T, 1, scaling, true, true> part{job, first + warp * pairs, 0, job.K, lane};
  let_later_work_begin();
  part.fetch_ahead();
  wait_for_earlier_work();
  float sum[columns][1] = {};
  part.multiply(sum);
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < columns; ++i) sums[warp * columns + i] = sum[i][0];
  }
  __syncthreads();
  if (threadIdx.x < outputs) {
    const int t = int(threadIdx.x), n = first + t, at = t / pairs * columns + t % pairs, half = job.N / 2;
    const float halves[2] = {rounded(product::finished<scaling>(job, 0, n, sums[at])),
                             rounded(product::finished<scaling>(job, 0, half + n, sums[at + pairs]))};
    float y;
    ops::swiglu_row(OneLane{}, 1, out.gate, &halves[0], &y);
    made[t] = to_bf16(y);
    if (out.plain != nullptr) out.plain[n] = made[t];
  }
  if (out.codes.row.part == Part::nothing) return;
  __syncthreads();
  encode_outputs(out.codes, made, first, &own);
}

}  // namespace

void gated_row(Queue queue, const ops::GatedGemm& a, const ops::Sink& y) {
  const Out out{few_rows_job(y), y.plain.as<Bf16>(), a.gate};
  const product::Job job = product::job_of(a.product);
  const Blocks blocks{.grid = dim3(unsigned(job.N / 2 / outputs)),
                      .threads = 32 * product::warps,
                      .cluster = out.codes.row.part == Part::blocks ? unsigned(cluster_blocks) : 1};
  product::with_operands(a.product, [&]<class T, product::Scaling scaling>() {
    if constexpr (!std::is_same_v<T, Fp16>) launch_early("gated_row_kernel", gated_row_kernel<T, scaling>, blocks, queue, job, out);
  });
}

}  // namespace octet::cuda
