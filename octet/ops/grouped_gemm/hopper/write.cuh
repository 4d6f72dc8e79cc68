#pragma once

// Only for *.sm90a.cu files: sums become d. A warp's 16 rows go through boxes of shared memory, which TMA stores while the warp continues.

#include "octet/ops/grouped_gemm/hopper/multiply.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda::tiles {

/// Which matrix of d a tile is of.
template <class F>
__device__ int matrix_of(const Place& p) {
  return F::groups == Groups::columns ? p.group : 0;
}

/// A warp's boxes, filled in turn; a box is filled again when its last store has read it. Where sums are added to pairs, boxes hold
/// the old ones, of 64 columns each.
template <class F>
struct Boxes {
  std::uint32_t at;
  int next = 0;
  unsigned parity = 0;  // of the next arrival of old values

  /// Begins to read the old values of a tile, from this warp's first row on.
  __device__ void read(const Job& job, const Place& p, int row, Barrier old, int lane) const {
    if (lane == 0) wait_stores<0>(), old.expect(unsigned(p.waves * 2 * F::box_bytes));
#pragma unroll
    for (int i = 0; i < 2 * F::waves; ++i)
      if (lane == 0 && i < 2 * p.waves)
        copy_box(box((next + i) % F::boxes), job.d, p.column + i % 2 * 64, row + i / 2 * wave_rows, matrix_of<F>(p), old);
  }
  __device__ std::uint32_t box(int i) const { return at + unsigned(i * F::box_bytes); }
  __device__ void wait(Barrier old) { old.wait(parity), parity ^= 1; }
  __device__ std::uint32_t take(int lane) const {
    if (!F::adds_pairs && lane == 0) wait_stores<F::boxes - 1>();
    __syncwarp();
    return box(next);
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

// Rows of a box are 128 bytes whose 16-byte pieces are swizzled, as TMA expects it. A box of 8 rows has the upper or lower ones of a
// warp's 16.

/// Where this lane's row of four matrices of 8 x 8 pairs begins, from 16-byte piece `first` on.
template <int rows>
__device__ std::uint32_t piece_of(std::uint32_t box, int first, int lane) {
  const int row = lane % rows;
  return box + unsigned(row * 128 + ((first + lane / rows) ^ (row % 8)) * 16);
}
template <class T, int rows>
__device__ void fill_with_pairs(std::uint32_t box, const float* sum, int half, int lane) {
#pragma unroll
  for (int j = 0; j < 8; j += 32 / rows) {
    const auto word = [&](int i) {  // the i-th matrix is that of piece j + i, or of piece j + i / 2 and half i % 2
      const float* const s = sum + (rows == 8 ? 4 * (j + i) + 2 * half : 4 * (j + i / 2) + 2 * (i % 2));
      return pair_word<T>(s[0], s[1]);
    };
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(piece_of<rows>(box, j, lane)), "r"(word(0)),
                 "r"(word(1)), "r"(word(2)), "r"(word(3))
                 : "memory");
  }
}
/// sum += the pairs of a box of 16 rows.
template <class T>
__device__ void add_pairs(std::uint32_t box, float* sum, int lane) {
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    unsigned word[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(piece_of<16>(box, j, lane))
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float low, high;
      pair_values<T>(word[i], low, high);
      sum[4 * j + 2 * i] += low, sum[4 * j + 2 * i + 1] += high;
    }
  }
}
// Sums of neighbouring columns are stored one by one. Stored as pairs, they would lie in the register banks of the fresh sums, and half of
// the FMAs that promote would take twice as long.
template <int rows>
__device__ void fill_with_floats(std::uint32_t box, const float* sum, int half, int lane) {
  const int row = lane / 4;  // and, of 16, the one 8 below, whose pieces are swizzled alike
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float* s = sum + 4 * j + (rows == 8 ? 2 * half : 0);
    const std::uint32_t to = box + unsigned(row * 128 + ((2 * j + lane % 4 / 2) ^ (row % 8)) * 16 + lane % 2 * 8);
    store_shared(to, s[0]), store_shared(to + 4, s[1]);
    if constexpr (rows == 16) store_shared(to + 8 * 128, s[2]), store_shared(to + 8 * 128 + 4, s[3]);
  }
}

// The end of a sum: scales that apply at the end, and the bias.
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
}

/// d = or += half a warp's 16 x 128 sums of a wave, as T.
template <class T, class F>
__device__ void write_pairs(const Job& job, float* sum, int x, int row, int z, Boxes<F>& boxes, int lane) {
#pragma unroll
  for (int half = 0; half < 16 / F::box_rows; ++half) {
    const std::uint32_t box = boxes.take(lane);
    if constexpr (F::adds_pairs) add_pairs<T>(box, sum, lane);
    fill_with_pairs<T, F::box_rows>(box, sum, half, lane);
    boxes.give(job, box, x, row + half * 8, z, lane);
  }
}

/// d = or += a warp's 16 x 128 sums of a wave.
template <class F>
__device__ void write_wave(const Job& job, WgmmaSums& sum, const Place& p, int row, Boxes<F>& boxes, int lane) {
  const int z = matrix_of<F>(p);
  finish<F>(job, sum, p, row, lane);
  if (!F::adds_pairs && job.d_type == DType::f32) {
    constexpr int halves = 16 / F::box_rows;
#pragma unroll
    for (int i = 0; i < 4 * halves; ++i) {
      const std::uint32_t box = boxes.take(lane);
      fill_with_floats<F::box_rows>(box, &sum[16 * (i / halves)], i % halves, lane);
      boxes.give(job, box, p.column + 32 * (i / halves), row + i % halves * 8, z, lane);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (job.d_type == DType::f16) write_pairs<Fp16>(job, &sum[32 * i], p.column + 64 * i, row, z, boxes, lane);
    else write_pairs<Bf16>(job, &sum[32 * i], p.column + 64 * i, row, z, boxes, lane);
  }
}

}  // namespace octet::cuda::tiles
