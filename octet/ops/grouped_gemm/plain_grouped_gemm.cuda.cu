#include "octet/ops/gemm/operand_view.cuh"
#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

// Grouped products of any formats, sizes and scale blocks, in one launch: operands are decoded as they are loaded, 64 x 64 results per
// block, 4 x 4 per thread, one chain of fused multiply-adds per result in order of k. Limits of groups are read here.

namespace octet::cuda {
namespace {

constexpr int side = 64, depth = 16, each = 4, threads = (side / each) * (side / each);

struct Limits {
  const std::int32_t *begin, *count;
  int experts;
};

struct Tile {
  float a[depth][side + 4], b[depth][side + 4];
};

// Rows [m0, m_end) by columns [n0, n_end), summed over k in [k0, k_end). b_row and b_col are the place of the matrix in b.
struct Region {
  std::int64_t m0, m_end, n0, n_end, k0, k_end, b_row, b_col;
};

__device__ __forceinline__ void multiply_region(const OperandView& a, const OperandView& b, const Region& r, Tile& tile,
                                                float (&sum)[each][each]) {
  const int x = int(threadIdx.x) % (side / each), y = int(threadIdx.x) / (side / each);
  for (std::int64_t k = r.k0; k < r.k_end; k += depth) {
    for (int i = int(threadIdx.x); i < side * depth; i += threads) {
      const int along = i % depth, line = i / depth;
      const std::int64_t at = k + along, m = r.m0 + line, n = r.n0 + line;
      tile.a[along][line] = at < r.k_end && m < r.m_end ? a.at(m, at) : 0.0f;
      tile.b[along][line] = at < r.k_end && n < r.n_end ? b.at(r.b_row + n, r.b_col + at) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < depth; ++i) {
      float left[each], right[each];
#pragma unroll
      for (int j = 0; j < each; ++j) left[j] = tile.a[i][y * each + j], right[j] = tile.b[i][x * each + j];
#pragma unroll
      for (int p = 0; p < each; ++p)
#pragma unroll
        for (int q = 0; q < each; ++q) sum[p][q] = fmaf(left[p], right[q], sum[p][q]);
    }
    __syncthreads();
  }
}

// d[row + m, n] (+)= sum.
template <class T>
__device__ __forceinline__ void store_region(const Region& r, const float (&sum)[each][each], std::int64_t row, std::int64_t columns,
                                             bool accumulate, T* d) {
  const int x = int(threadIdx.x) % (side / each), y = int(threadIdx.x) / (side / each);
#pragma unroll
  for (int p = 0; p < each; ++p)
#pragma unroll
    for (int q = 0; q < each; ++q) {
      const std::int64_t m = r.m0 + y * each + p, n = r.n0 + x * each + q;
      if (m >= r.m_end || n >= r.n_end) continue;
      const std::int64_t at = (row + m) * columns + n;
      store(d, at, Pack<1>{accumulate ? load<1>(d, at).v[0] + sum[p][q] : sum[p][q]});
    }
}

// Groups along M: a block has 64 rows, which may be several groups'.
template <class T>
__global__ void __launch_bounds__(threads)
    grouped_rows_kernel(std::int64_t rows, std::int64_t N, std::int64_t K, const __grid_constant__ OperandView a,
                        const __grid_constant__ OperandView b, bool stack_columns, Limits groups, bool accumulate, T* d) {
  __shared__ Tile tile;
  const std::int64_t first = std::int64_t(blockIdx.y) * side, last = min(first + side, rows), n0 = std::int64_t(blockIdx.x) * side;
  int e = 0;
  for (int step = 512; step > 0; step /= 2)  // the first group that ends after `first`
    if (e + step <= groups.experts && groups.begin[e + step] <= first) e += step;
  for (; e < groups.experts && groups.begin[e] < last; ++e) {
    const std::int64_t begin = groups.begin[e], end = begin + groups.count[e];
    const Region r{max(first, begin), min(last, end), n0, min(n0 + side, N), 0, K, stack_columns ? 0 : e * N, stack_columns ? e * K : 0};
    if (r.m0 >= r.m_end) continue;
    float sum[each][each] = {};
    multiply_region(a, b, r, tile, sum);
    store_region(r, sum, 0, N, accumulate, d);
  }
}

// Groups along K: a block's third index is the group.
template <class T>
__global__ void __launch_bounds__(threads)
    grouped_columns_kernel(std::int64_t M, std::int64_t N, const __grid_constant__ OperandView a, const __grid_constant__ OperandView b,
                           Limits groups, bool accumulate, T* d) {
  __shared__ Tile tile;
  const int e = int(blockIdx.z), count = groups.count[e];
  if (accumulate && count == 0) return;
  const std::int64_t begin = groups.begin[e], m0 = std::int64_t(blockIdx.y) * side, n0 = std::int64_t(blockIdx.x) * side;
  const Region r{m0, min(m0 + side, M), n0, min(n0 + side, N), begin, begin + count, 0, 0};
  float sum[each][each] = {};
  multiply_region(a, b, r, tile, sum);
  store_region(r, sum, e * M, N, accumulate, d);
}

}  // namespace

void plain_grouped_gemm(Queue queue, const ops::GroupedGemm& g) {
  const std::int64_t M = g.along_k ? g.a.rows() : g.d.shape[0], N = g.N();
  if (g.d.count() == 0) return;
  const Limits groups{g.groups.begin.as<std::int32_t>(), g.groups.count.as<std::int32_t>(), int(g.groups.size())};
  const dim3 grid(unsigned(ceil_div(N, side)), unsigned(ceil_div(M, side)), g.along_k ? unsigned(groups.experts) : 1);
  dispatch<float, Bf16, Fp16>(g.d.dtype, "grouped_gemm", [&]<class T>() {
    if (g.along_k)
      grouped_columns_kernel<T><<<grid, threads, 0, queue>>>(M, N, view_of(g.a), view_of(g.b), groups, g.accumulate, g.d.as<T>());
    else
      grouped_rows_kernel<T>
          <<<grid, threads, 0, queue>>>(M, N, g.K(), view_of(g.a), view_of(g.b), g.stack_columns, groups, g.accumulate, g.d.as<T>());
  });
  launched("plain_grouped_gemm");
}

}  // namespace octet::cuda
