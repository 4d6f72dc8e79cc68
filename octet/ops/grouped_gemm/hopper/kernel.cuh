#pragma once

// Only for *.sm90a.cu files: the kernel, and its launch.

#include "octet/ops/grouped_gemm/hopper/copy.cuh"
#include "octet/ops/grouped_gemm/hopper/write.cuh"

namespace octet::cuda::tiles {

template <class A, class B, class F, int values>
__device__ void make_tiles(const Job& job, const Shared<F>& shared, Walk<F, values> walk) {
  const int thread = int(threadIdx.x), lane = thread % 32;
  Reader<F> in(shared, thread);
  Boxes<F> boxes{shared.staging(thread / 32)};
  Turn<F> turn;
  if (F::lead >= 0 && in.group == 1) in.end_turn();
  Place p;
  while (walk.next(p)) {
    if (F::adds_pairs && p.waves > 0 && p.blocks > 0) boxes.read(job, p, p.row + thread / 32 * 16, shared.old(thread / 32), lane);
    WgmmaSums sum[F::waves] = {};
    if (F::b_shared && p.waves == 0) pass_stages<F>(in, p.blocks, turn);
    else if (F::waves == 1 || p.waves == 1) multiply<A, B, F, 1>(sum, in, p.blocks, turn);
    else multiply<A, B, F, F::waves>(sum, in, p.blocks, turn);
    if (job.write == Write::add && p.blocks == 0) continue;
    if (F::adds_pairs && p.waves > 0) boxes.wait(shared.old(thread / 32));
#pragma unroll
    for (int wave = 0; wave < F::waves; ++wave)
      if (wave < p.waves) write_wave<F>(job, sum[wave], p, p.row + wave * wave_rows + thread / 32 * 16, boxes, lane);
  }
  if (lane == 0) wait_stores<0>();
}

template <class A, class B, class F>
__global__ void __launch_bounds__(threads, 1) tiles_kernel(const __grid_constant__ Job job) {
  constexpr int values = depth / int(sizeof(A));
  extern __shared__ std::uint8_t memory[];
  const Shared<F> shared{(shared_address(memory) + 1023) / 1024 * 1024};
  const unsigned rank = F::cluster == 1 ? 0 : cluster_rank();
  const Walk<F, values> walk(job, int(blockIdx.x) / F::cluster, int(gridDim.x) / F::cluster, int(rank));
  if (threadIdx.x == 0) {
    for (int i = 0; i < F::stages; ++i) shared.full(i).init(2), shared.empty(i).init(F::cluster * Shared<F>::warps);
    for (int group = 0; group < 2; ++group) shared.turn(group).init(warpgroup / 32);
    for (int warp = 0; warp < Shared<F>::warps; ++warp) shared.old(warp).init(1);
    fence_barriers();
  }
  cluster_sync();
  if (threadIdx.x >= multipliers) {
    fewer_registers<few_registers>();
    if (threadIdx.x == multipliers) copy_a<F, values>(job, shared, walk, rank);
    if (threadIdx.x == multipliers + 32) copy_b<F, values>(job, shared, walk, rank);
  } else {
    more_registers<many_registers>();
    make_tiles<A, B, F, values>(job, shared, walk);
  }
  __syncwarp();
  cluster_sync();  // until then the other block's copies and arrivals may come here
}

template <class A, class B, class F>
void launch(Queue queue, const Job& job) {
  const auto kernel = tiles_kernel<A, B, F>;
  static const int clusters = clusters_at_once(kernel, facts().multiprocessors / F::cluster, F::cluster, threads, Shared<F>::bytes);
  cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {unsigned(F::cluster), 1, 1};
  const cudaLaunchConfig_t config{.gridDim = dim3(unsigned(clusters * F::cluster)),
                                  .blockDim = dim3(unsigned(threads)),
                                  .dynamicSmemBytes = std::size_t(Shared<F>::bytes),
                                  .stream = queue,
                                  .attrs = &cluster,
                                  .numAttrs = 1};
  require(cudaLaunchKernelEx(&config, kernel, job), "promoted gemm");
}

}  // namespace octet::cuda::tiles
