#include "octet/ops/gemm/few_rows.cuh"

namespace octet::cuda {
namespace row_products {
namespace {

template <class T>
__device__ __forceinline__ void write_value(T* d, std::int64_t at, float x, bool accumulate) {
  store(d, at, Pack<1>{accumulate ? load<1>(d, at).v[0] + x : x});
}

/// d[m, n] = or += x, scaled, with the bias.
template <Scaling scaling>
__device__ __forceinline__ void finish(const Job& job, int m, int n, float sum) {
  const float x = finished<scaling>(job, m, n, sum);
  const std::int64_t at = std::int64_t(m) * job.N + n;
  if (job.d_type == DType::f32) write_value(static_cast<float*>(job.d), at, x, job.accumulate);
  else if (job.d_type == DType::bf16) write_value(static_cast<Bf16*>(job.d), at, x, job.accumulate);
  else write_value(static_cast<Fp16*>(job.d), at, x, job.accumulate);
}

template <class T, int rows, Scaling scaling, bool aligned>
__global__ void __launch_bounds__(32 * warps, blocks_at_once<rows, aligned>) few_rows_kernel(const __grid_constant__ Job job) {
  constexpr int columns = columns_of<rows>, values = rows * columns;
  __shared__ float sums[warps][values];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, bits = job.slice_bits, slice = warp & ((1 << bits) - 1);
  const int first = int(blockIdx.x) * ((warps >> bits) * columns), column = first + (warp >> bits) * columns;
  const int steps = (job.K + step_values<T> - 1) / step_values<T>, begin = (steps * slice >> bits) * step_values<T>;
  const int end = column < job.N ? min(job.K, (steps * (slice + 1) >> bits) * step_values<T>) : begin;
  const Part<T, rows, scaling, aligned> part{job, column, begin, end, lane};
  let_later_work_begin();
  part.fetch_ahead();
  wait_for_earlier_work();
  float sum[columns][rows] = {};
  part.multiply(sum);
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < values; ++i) sums[warp][i] = sum[i / rows][i % rows];
  }
  __syncthreads();
  for (int t = int(threadIdx.x); t < (warps >> bits) * values; t += 32 * warps) {
    const int m = t % rows, n = first + t / rows;
    if (m >= job.M || n >= job.N) continue;
    float x = 0;
    for (int s = 0; s < 1 << bits; ++s) x += sums[(t / values << bits) + s][t % values];
    finish<scaling>(job, m, n, x);
  }
}

template <class T, int rows, Scaling scaling, bool aligned>
void run(Queue queue, Job job) {
  const std::int64_t parts = ceil_div(job.N, columns_of<rows>);
  job.slice_bits = slice_bits_for(parts, ceil_div(job.K, step_values<T>), warps * blocks_at_once<rows, aligned>);
  const unsigned blocks = unsigned(ceil_div(parts << job.slice_bits, warps));
  launch_early("few_rows_kernel", few_rows_kernel<T, rows, scaling, aligned>, {dim3(blocks), 32 * warps}, queue, job);
}

template <class T, Scaling scaling>
void run(Queue queue, const Job& job) {
  const auto addresses = reinterpret_cast<std::uintptr_t>(job.a) | reinterpret_cast<std::uintptr_t>(job.b);
  if (addresses % piece_bytes != 0 || job.K % piece_values<T> != 0) return run<T, 8, scaling, false>(queue, job);
  if (job.M == 1) return run<T, 1, scaling, true>(queue, job);
  if (job.M == 2) return run<T, 2, scaling, true>(queue, job);
  if (job.M <= 4) return run<T, 4, scaling, true>(queue, job);
  run<T, 8, scaling, true>(queue, job);
}

}  // namespace
}  // namespace row_products

void few_rows_gemm(Queue queue, const ops::Gemm& g) {
  row_products::with_operands(
      g, [&]<class T, row_products::Scaling scaling>() { row_products::run<T, scaling>(queue, row_products::job_of(g)); });
}

}  // namespace octet::cuda
