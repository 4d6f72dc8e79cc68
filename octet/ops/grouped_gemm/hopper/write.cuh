#pragma once

// Only for *.sm90a.cu files: sums become d. A warp's 16 rows go through boxes of shared memory, which TMA stores while the warp continues.

#include "octet/ops/grouped_gemm/hopper/multiply.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda::tiles {

/// A warp's boxes, filled in turn; a box is filled again when its last store has read it.
template <class F>
struct Boxes {
  std::uint32_t at;
  int next = 0;

  __device__ std::uint32_t take(int lane) const {
    if (lane == 0) wait_stores<F::boxes - 1>();
    __syncwarp();
    return at + unsigned(next * box_bytes);
  }
  __device__ void give(const Job& job, std::uint32_t box, int x, int y, int z, int lane) {
    fence_stores();
    __syncwarp();
    if (lane == 0) {
      if (job.write == Write::add && job.d_type == DType::f32) add_box(box, job.d, x, y, z);
      else store_box(box, job.d, x, y, z);
      commit_stores();
    }
    next = next + 1 == F::boxes ? 0 : next + 1;
  }
};

// Rows of a box are 128 bytes whose 16-byte pieces are swizzled, as TMA expects it.
template <class T>
__device__ void fill_with_pairs(std::uint32_t box, const float* sum, int lane) {
  const int row = lane % 16, piece = lane / 16;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const float* s = sum + 4 * j;
    const std::uint32_t to = box + unsigned(row * 128 + ((j + piece) ^ (row % 8)) * 16);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(pair_word<T>(s[0], s[1])),
                 "r"(pair_word<T>(s[2], s[3])), "r"(pair_word<T>(s[4], s[5])), "r"(pair_word<T>(s[6], s[7]))
                 : "memory");
  }
}
// Sums of neighbouring columns are stored one by one. Stored as pairs, they would lie in the register banks of the fresh sums, and half of
// the FMAs that promote would take twice as long.
__device__ inline void fill_with_floats(std::uint32_t box, const float* sum, int lane) {
  const int row = lane / 4;  // and the one 8 below, whose pieces are swizzled alike
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float* s = sum + 4 * j;
    const std::uint32_t to = box + unsigned(row * 128 + ((2 * j + lane % 4 / 2) ^ (row % 8)) * 16 + lane % 2 * 8);
    store_shared(to, s[0]), store_shared(to + 4, s[1]);
    store_shared(to + 8 * 128, s[2]), store_shared(to + 8 * 128 + 4, s[3]);
  }
}

// The end of a sum: scales that apply at the end, the bias, and values of a 16-bit d to which they are added, which is rounded once.
template <class F>
__device__ void finish(const Job& job, WgmmaSums& sum, const Place& p, int row, int lane) {
  const int upper = row + lane / 4, first = p.column + lane % 4 * 2;
  if constexpr (F::promotion == Promotion::plain || F::promotion == Promotion::none) {
    if (job.a_factor != nullptr) {
      const float a[2] = {job.a_factor[std::int64_t(min(upper, job.M - 1)) * job.a_factor_step],
                          job.a_factor[std::int64_t(min(upper + 8, job.M - 1)) * job.a_factor_step]};
      const float* const b = job.b_factor + std::int64_t(p.group) * job.b_factor_group;
#pragma unroll
      for (int i = 0; i < 64; ++i)
        sum[i] *= a[i / 2 % 2] * __ldg(b + std::int64_t(min(first + i / 4 * 8 + i % 2, job.N - 1)) * job.b_factor_step);
    }
  }
  if (job.bias != nullptr) {
#pragma unroll
    for (int i = 0; i < 64; ++i)
      if (const int column = first + i / 4 * 8 + i % 2; column < job.N) sum[i] += __ldg(job.bias + column);
  }
  if (job.write == Write::store || job.d_type == DType::f32) return;
  const std::int64_t group = F::groups == Groups::columns ? std::int64_t(p.group) * job.M : 0;
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    const int at = upper + i / 2 % 2 * 8, column = first + i / 4 * 8;
    if (at >= job.M || column >= job.N) continue;
    const unsigned old = *(static_cast<const unsigned*>(job.d_data) + ((group + at) * job.N + column) / 2);
    float low, high;
    if (job.d_type == DType::f16) pair_values<Fp16>(old, low, high);
    else pair_values<Bf16>(old, low, high);
    sum[i] += low, sum[i + 1] += high;
  }
}

/// d = or += a warp's 16 x 128 sums of a wave.
template <class F>
__device__ void write_wave(const Job& job, WgmmaSums& sum, const Place& p, int row, Boxes<F>& boxes, int lane) {
  const int z = F::groups == Groups::columns ? p.group : 0;
  finish<F>(job, sum, p, row, lane);
  if (job.d_type == DType::f32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t box = boxes.take(lane);
      fill_with_floats(box, &sum[16 * i], lane);
      boxes.give(job, box, p.column + 32 * i, row, z, lane);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t box = boxes.take(lane);
    if (job.d_type == DType::f16) fill_with_pairs<Fp16>(box, &sum[32 * i], lane);
    else fill_with_pairs<Bf16>(box, &sum[32 * i], lane);
    boxes.give(job, box, p.column + 64 * i, row, z, lane);
  }
}

}  // namespace octet::cuda::tiles
