#pragma once

// Only for *.sm90a.cu files: the threads that copy operands and scales to shared memory. One thread alone is too slow.

#include "octet/ops/grouped_gemm/hopper/walk.cuh"

namespace octet::cuda::tiles {

/// Rows of `a` and their scales. Blocks of a cluster read the same rows: each copies its part of them to both.
template <class F, int values>
__device__ void copy_a(const Job& job, const Shared<F>& shared, Walk<F, values> walk, unsigned rank) {
  using S = Shared<F>;
  Turn<F> turn;
  Place p;
  while (walk.next(p)) {
    const int scales = F::groups == Groups::columns ? p.first / 128 : 0;
#pragma unroll 1
    for (int k = 0; k < p.blocks; ++k, turn.advance()) {
      shared.empty(turn.stage).wait(turn.parity ^ 1);
      const Barrier full = shared.full(turn.stage);
      const std::uint32_t to = shared.a(turn.stage);
      full.expect(unsigned(p.waves * 2 * half_bytes + S::a_scale_bytes));
      const int first = F::a_shared ? int(rank) * p.waves : 0, here = F::a_shared ? p.waves : 2 * p.waves;
      for (int i = first; i < first + here; ++i) {
        const int at = p.first + k * values, row = p.row + i * half_rows, x = F::a_turned ? row : at, y = F::a_turned ? at : row;
        if constexpr (F::a_shared) copy_box_to_both(to + unsigned(i * half_bytes), job.a, x, y, 0, full);
        else copy_box(to + unsigned(i * half_bytes), job.a, x, y, 0, full);
      }
      if constexpr (S::a_scaled) copy_box(shared.a_scale(turn.stage), job.a_scale, p.row, scales + k, full);
    }
  }
}

/// Columns of b and their scales. Each 128x128 block's scale is read one stage ahead.
template <class F, int values>
__device__ void copy_b(const Job& job, const Shared<F>& shared, Walk<F, values> walk, unsigned rank) {
  using S = Shared<F>;
  Turn<F> turn;
  Place p;
  while (walk.next(p)) {
    const int group = F::groups == Groups::rows ? p.group : 0, scales = F::groups == Groups::columns ? p.first / 128 : 0;
    const int y = job.stack_columns ? group : p.column, z = job.stack_columns ? p.column : group;
    const float* squares = nullptr;
    float square = 0;
    if constexpr (S::b_square) {
      squares = job.squares + std::int64_t(min(p.column, job.N - 1) / 128) * job.squares_row + std::int64_t(p.group) * job.squares_group;
      if (p.blocks > 0) square = __ldg(squares);
    }
#pragma unroll 1
    for (int k = 0; k < p.blocks; ++k, turn.advance()) {
      const float next = S::b_square && k + 1 < p.blocks ? __ldg(squares + k + 1) : 0.0f;
      shared.empty(turn.stage).wait(turn.parity ^ 1);
      const Barrier full = shared.full(turn.stage);
      if constexpr (S::b_square) store_shared(shared.b_scale(turn.stage), square), square = next;
      full.expect(unsigned(b_bytes + S::b_scale_bytes));
      const int at = p.first + k * values;
      if constexpr (F::b_shared) {
        copy_box_to_both(shared.b(turn.stage) + rank * half_bytes, job.b, at, y + int(rank) * half_rows, z, full);
      } else if constexpr (F::b_turned) {
        for (int i = 0; i < 2; ++i)
          copy_box(shared.b(turn.stage) + unsigned(i * half_bytes), job.b, p.column + i * half_rows, at, group, full);
      } else {
        copy_box(shared.b(turn.stage), job.b, at, y, z, full);
      }
      if constexpr (S::b_scaled) copy_box(shared.b_scale(turn.stage), job.b_scale, p.column, scales + k, full);
    }
  }
}

}  // namespace octet::cuda::tiles
