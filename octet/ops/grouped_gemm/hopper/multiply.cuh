#pragma once

// Only for *.sm90a.cu files: the sums of a tile.

#include "octet/ops/grouped_gemm/hopper/walk.cuh"

namespace octet::cuda::tiles {

__device__ inline float2 load_shared_pair(std::uint32_t at) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at));
  return x;
}

/// sum += scale fresh for one of this thread's two rows: one after another, which reduces register reads.
__device__ inline void add_row(WgmmaSums& sum, const WgmmaSums& fresh, int row, float scale) {
#pragma unroll
  for (int i = 2 * row; i < 64; i += 4) {
    sum[i] = __fmaf_rn(fresh[i], scale, sum[i]);
    sum[i + 1] = __fmaf_rn(fresh[i + 1], scale, sum[i + 1]);
  }
}

/// 1x128 scales of b in this thread's columns. All waves of a tile need the same ones. They are read while the tensor cores work.
struct ColumnScales {
  float2 pairs[16];

  /// The address is that of the first one.
  __device__ void read(std::uint32_t b_scale) {
#pragma unroll
    for (int j = 0; j < 16; ++j) pairs[j] = load_shared_pair(b_scale + j * 8 * 4);
  }
  /// fresh *= scales
  __device__ void scale(WgmmaSums& fresh) const {
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      fresh[4 * j] *= pairs[j].x, fresh[4 * j + 2] *= pairs[j].x;
      fresh[4 * j + 1] *= pairs[j].y, fresh[4 * j + 3] *= pairs[j].y;
    }
  }
};

/// This thread's view of the stages.
template <class F>
struct Reader {
  const Shared<F>& shared;
  int group, lane;  // which of the two warpgroups
  WgmmaMatrix a, b;
  std::uint32_t a_scale, b_scale;
  Barrier empty;       // of the first stage, in the block that this lane tells
  unsigned turns = 0;  // parity of the next turn

  __device__ Reader(const Shared<F>& s, int thread)
      : shared(s),
        group(__shfl_sync(~0u, thread / warpgroup, 0)),  // known to be the same in a warp
        lane(thread % 32),
        a(matrix<F::a_turned>(s.a(0) + unsigned(group * half_bytes))),
        b(matrix<F::b_turned>(s.b(0))),
        a_scale(s.a_scale(0) + unsigned(thread / 32 * 16 + thread % 32 / 4) * 4),
        b_scale(s.b_scale(0) + unsigned(thread % 4 * 2) * 4),
        empty(s.empty(0).of_block(unsigned(lane % F::cluster))) {}

  // Values that come from another lane are made once: the compiler would compute others again for each stage, and multiplications would
  // wait for it.
  template <bool turned>
  static __device__ WgmmaMatrix matrix(std::uint32_t address) {
    if constexpr (turned) return {__shfl_sync(~0u, WgmmaMatrix::turned(address, half_bytes).low, 0)};
    else return {__shfl_sync(~0u, WgmmaMatrix::at(address).low, 0)};
  }

  /// The stage may be filled again, in all blocks whose copies go there.
  __device__ void release(int stage) const {
    __syncwarp();
    if (lane < F::cluster) empty.after(stage).arrive_remotely();
  }
  __device__ void begin_turn() {
    if constexpr (F::lead >= 0) shared.turn(group).wait(turns), turns ^= 1;
  }
  __device__ void end_turn() const {
    if (F::lead >= 0 && lane == 0) shared.turn(1 - group).arrive();
  }
};

/// s = or += the products of the i-th quarter of a stage's K.
template <class A, class B, class F>
__device__ void multiply_quarter(WgmmaSums& s, WgmmaMatrix a, WgmmaMatrix b, int i, bool add) {
  constexpr unsigned a_step = F::a_turned ? 2048 : 32, b_step = F::b_turned ? 2048 : 32;
  if constexpr (std::is_same_v<A, Bf16>) wgmma_bf16<F::a_turned, F::b_turned>(s, a.after(a_step * i), b.after(b_step * i), add);
  else wgmma<A, B>(s, a.after(a_step * i), b.after(b_step * i), add);
}

/// Adds the products of a tile with `waves` waves in the tensor cores' own sums.
template <class A, class B, class F, int waves>
__device__ void multiply_plainly(WgmmaSums (&sum)[F::waves], Reader<F>& in, int blocks, Turn<F>& turn) {
  int last = -1;  // stage that may still be read
#pragma unroll 1
  for (int k = 0; k < blocks; ++k, turn.advance()) {
    const unsigned at = unsigned(turn.stage * Shared<F>::tile_bytes);
    in.shared.full(turn.stage).wait(turn.parity);
#pragma unroll
    for (int wave = 0; wave < waves; ++wave) wgmma_hold(sum[wave]);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int wave = 0; wave < waves; ++wave)
#pragma unroll
      for (int i = 0; i < 4; ++i) multiply_quarter<A, B, F>(sum[wave], in.a.after(at + wave * 2 * half_bytes), in.b.after(at), i, true);
    wgmma_commit();
    wgmma_wait_for_all_but_one();
    if (last >= 0) in.release(last);
    last = turn.stage;
  }
#pragma unroll
  for (int wave = 0; wave < waves; ++wave) wgmma_wait(sum[wave]);
  if (last >= 0) in.release(last);
}

/// Adds the products of a tile with `waves` waves.
template <class A, class B, class F, int waves>
__device__ void multiply_promoted(WgmmaSums (&sum)[F::waves], Reader<F>& in, int blocks, Turn<F>& turn) {
  constexpr bool square = F::promotion == Promotion::square, line = F::promotion == Promotion::line;
  bool ready = in.shared.full(turn.stage).ended(turn.parity);
#pragma unroll 1
  for (; blocks > 0; --blocks) {
    const unsigned at = unsigned(turn.stage * Shared<F>::tile_bytes), scales = unsigned(turn.stage * Shared<F>::scale_bytes);
    ColumnScales columns;
    if (!ready) in.shared.full(turn.stage).wait(turn.parity);
    const float b_square = square ? load_shared(in.shared.b_scale(turn.stage)) : 1.0f;
#pragma unroll
    for (int wave = 0; wave < waves; ++wave) {
      WgmmaSums fresh;
      const WgmmaMatrix a = in.a.after(at + wave * 2 * half_bytes), b = in.b.after(at);
      float upper = b_square, lower = b_square;
      if constexpr (square || line) {
        const std::uint32_t scale = in.a_scale + scales + wave * wave_rows * 4;
        upper = load_shared(scale), lower = load_shared(scale + 8 * 4);
      }
      in.begin_turn();
      wgmma_begin(fresh);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        multiply_quarter<A, B, F>(fresh, a, b, i, i > 0);
        if (3 - i == F::lead) wgmma_commit();
      }
      if (F::lead != 0) wgmma_commit();
      if constexpr (square) upper *= b_square, lower *= b_square;
      if (line && wave == 0) columns.read(in.b_scale + scales);
      if (F::lead > 0) wgmma_wait_for_all_but_one();
      if (F::lead > 0) in.end_turn();
      wgmma_wait(fresh);
      if (F::lead == 0) in.end_turn();
      if (wave == waves - 1) {
        in.release(turn.stage);
        turn.advance();
        ready = in.shared.full(turn.stage).ended(turn.parity);
      }
      if (line) columns.scale(fresh);
      add_row(sum[wave], fresh, 0, upper), add_row(sum[wave], fresh, 1, lower);
    }
  }
}

/// Of a tile without rows: the other block of the cluster copies here, too.
template <class F>
__device__ void pass_stages(const Reader<F>& in, int blocks, Turn<F>& turn) {
#pragma unroll 1
  for (; blocks > 0; --blocks, turn.advance()) in.shared.full(turn.stage).wait(turn.parity), in.release(turn.stage);
}

template <class A, class B, class F, int waves>
__device__ void multiply(WgmmaSums (&sum)[F::waves], Reader<F>& in, int blocks, Turn<F>& turn) {
  if constexpr (F::promotion == Promotion::none) multiply_plainly<A, B, F, waves>(sum, in, blocks, turn);
  else multiply_promoted<A, B, F, waves>(sum, in, blocks, turn);
}

}  // namespace octet::cuda::tiles
