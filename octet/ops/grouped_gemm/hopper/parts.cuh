#pragma once

// Only for *.sm90a.cu files: products whose K is divided among blocks, where a result has fewer tiles than the GPU has multiprocessors.

#include "octet/ops/grouped_gemm/hopper/job.cuh"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda::tiles {

/// The number of parts of K with which a dense product would take the least time, or 1. A stage of a tile of 256 x 128 takes about 1.2
/// microseconds, a tile 4 stages more, and the sum of the parts 3 microseconds and its bytes.
inline std::int64_t parts_of_k(const Operands& o, std::size_t workspace_bytes) {
  const std::int64_t M = o.d.shape[0], N = o.d.shape[1], blocks = ceil_div(o.a.cols(), depth);
  const std::int64_t tiles = ceil_div(M, 256) * ceil_div(N, tile_columns), places = facts().multiprocessors;
  const auto microseconds = [&](std::int64_t parts) {
    const std::int64_t last = parts * tiles % places;  // these are cut in two where they are for at most half of the GPU
    const double rounds = double(parts * tiles / places) + (last == 0 ? 0.0 : 2 * last <= places ? 0.5 : 1.0);
    return rounds * double(ceil_div(blocks, parts) + 4) * 1.2 + (parts > 1 ? 3 + double(M * N * parts) * 8 / 4e6 : 0);
  };
  std::int64_t best = 1;
  for (std::int64_t parts = 2; parts <= 16 && parts <= blocks && std::size_t(M * N * parts) * 4 <= workspace_bytes; ++parts)
    if (microseconds(parts) < microseconds(best)) best = parts;
  return ceil_div(blocks, ceil_div(blocks, best));  // none is empty
}

/// d = or += the sum of `parts` matrices, in order, four values per thread.
template <class D>
__global__ void sum_parts_kernel(std::int64_t fours, int parts, const float4* from, D* d, bool add) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= fours) return;
  Pack<4> sum{};
#pragma unroll 4
  for (int part = 0; part < parts; ++part) {
    const float4 x = __ldcs(from + part * fours + i);
    sum.v[0] += x.x, sum.v[1] += x.y, sum.v[2] += x.z, sum.v[3] += x.w;
  }
  store(d, 4 * i, add ? load<4>(static_cast<const D*>(d), 4 * i) + sum : sum);
}

inline void sum_parts(Queue queue, const Tensor& parts, std::int64_t number, const Tensor& d, bool add) {
  const std::int64_t fours = d.count() / 4;
  constexpr int block = 256;
  dispatch<float, Bf16, Fp16>(d.dtype, "sum of parts", [&]<class D>() {
    sum_parts_kernel<<<unsigned(ceil_div(fours, block)), block, 0, queue>>>(fours, int(number), static_cast<const float4*>(parts.data),
                                                                            d.as<D>(), add);
  });
  launched("sum_parts");
}

}  // namespace octet::cuda::tiles
