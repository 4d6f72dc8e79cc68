#pragma once

// Only for *.sm90a.cu files: the common part of the promoted GEMMs for Hopper, dense and in groups. A persistent kernel of three
// warpgroups: one copies operands and scales by TMA, two multiply. A tile of d has `waves` x 128 rows and 128 columns; each of the two
// multiplies 64 rows of each wave, and while one promotes its sums to FP32, the tensor cores work for the other.

#include "octet/ops/gemm/wgmma.cuh"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda::tiles {

enum class Groups { rows, columns };  // groups lie along M, along K
/// When sums of products are promoted to FP32 and scaled: every 128 of K by 1x128 scales of `a` and 128x128 ones of b, or 1x128 ones of
/// both; every 128 of K without scales; never. The latter two are scaled at the end.
enum class Promotion { square, line, plain, none };
enum class Write { store, add };
/// The operand that a cluster of two blocks reads once: none, and blocks are alone; rows of `a`, for tiles side by side; columns of b, for
/// tiles one below the other.
enum class Share { nothing, a, b };

/// Constants for which a kernel is compiled.
template <Groups groups_, Promotion promotion_, int waves_, Share share_, int stages_, int boxes_, int box_rows_, int lead_,
          bool a_turned_ = false, bool b_turned_ = false>
struct Form {
  static constexpr Groups groups = groups_;
  static constexpr Promotion promotion = promotion_;
  static constexpr int waves = waves_;  // of 128 rows of a tile: 1 or 2
  static constexpr bool a_shared = share_ == Share::a, b_shared = share_ == Share::b;
  static constexpr int cluster = share_ == Share::nothing ? 1 : 2;
  static constexpr int stages = stages_;  // of 128 bytes of K
  // Of a warp's sums on their way to d: 16 or 8 rows of 128 bytes.
  static constexpr int boxes = boxes_, box_rows = box_rows_, box_bytes = box_rows * 128;
  static constexpr bool adds_pairs = false;  // see Adding
  using WithWholeTile = Form<groups_, promotion_, waves_, share_, 3, 4, 16, lead_, a_turned_, b_turned_>;
  // The two warpgroups multiply in turn: one starts when `lead` of the other's four multiplications are left. Below 0: they do not wait for
  // each other.
  static constexpr int lead = lead_;
  static constexpr bool a_turned = a_turned_, b_turned = b_turned_;  // BF16 whose memory is [K, M], [K, N]
};

constexpr int warpgroup = 128, multipliers = 2 * warpgroup, threads = multipliers + warpgroup;
constexpr int few_registers = 40, many_registers = 232;  // of a thread that copies, that multiplies: 64512 of 65536
constexpr int depth = 128;                               // bytes of K of a stage
constexpr int tile_columns = 128, wave_rows = 128, half_rows = 64;
constexpr int half_bytes = half_rows * depth, b_bytes = tile_columns * depth;

/// The same, where sums are added to a 16-bit d, which is rounded once. Its values are read while the sums are made: boxes hold those of a
/// tile.
template <class F>
struct Adding : F::WithWholeTile {
  static_assert(F::WithWholeTile::boxes >= 2 * F::waves);
  static constexpr bool adds_pairs = true;
};

/// Operands and results of one product, as the kernel holds them.
struct Job {
  CUtensorMap a, b, d, a_scale, b_scale;
  const std::int32_t *begin, *count;  // of groups; null: one group of everything
  int groups, M, N, K;                // d is [M, N] or, groups along K, [groups M, N]
  int columns_of_clusters;            // how many clusters cover N
  bool stack_columns;                 // b's groups lie side by side along K
  const float* squares;               // scales of b's 128 x 128 blocks, `squares_row` to a row, the next group's squares_group further
  int squares_row, squares_group;
  const float *a_factor, *b_factor;  // scales that are applied at the end
  int a_factor_step, b_factor_step;  // 1, or 0 where one is all rows'
  int b_factor_group;                // from a group's to the next one's
  const float* bias;
  Write write;
  DType d_type;
  void* d_data;
};

/// Where things are in shared memory.
template <class F>
struct Shared {
  static constexpr int a_bytes = F::waves * 2 * half_bytes, tile_bytes = a_bytes + b_bytes;
  static constexpr bool a_scaled = F::promotion == Promotion::square || F::promotion == Promotion::line;
  static constexpr bool b_scaled = F::promotion == Promotion::line, b_square = F::promotion == Promotion::square;
  static constexpr int a_scale_bytes = a_scaled ? F::waves * wave_rows * 4 : 0, b_scale_bytes = b_scaled ? tile_columns * 4 : 0;
  static constexpr int b_square_bytes = b_square ? 128 : 0;  // one number; copies begin at multiples of 128
  static constexpr int scale_bytes = a_scale_bytes + b_scale_bytes + b_square_bytes;
  static constexpr int warps = multipliers / 32;  // that multiply
  static constexpr int staging_bytes = warps * F::boxes * F::box_bytes;
  static constexpr int scales_at = F::stages * tile_bytes + staging_bytes, barriers_at = scales_at + F::stages * scale_bytes;
  static constexpr int turns_at = barriers_at + F::stages * 16, olds_at = turns_at + 16;
  static constexpr int bytes = olds_at + warps * 8 + 1024;  // the first address is rounded up to a multiple of 1024
  static_assert(bytes <= 232448);

  std::uint32_t base;
  __device__ std::uint32_t a(int stage) const { return base + unsigned(stage * tile_bytes); }
  __device__ std::uint32_t b(int stage) const { return a(stage) + a_bytes; }
  __device__ std::uint32_t staging(int warp) const { return base + unsigned(F::stages * tile_bytes + warp * F::boxes * F::box_bytes); }
  __device__ std::uint32_t a_scale(int stage) const { return base + unsigned(scales_at + stage * scale_bytes); }
  __device__ std::uint32_t b_scale(int stage) const { return a_scale(stage) + a_scale_bytes; }
  __device__ Barrier full(int stage) const { return {base + unsigned(barriers_at + stage * 8)}; }
  __device__ Barrier empty(int stage) const { return {full(stage).at + F::stages * 8}; }
  __device__ Barrier old(int warp) const { return {base + unsigned(olds_at + warp * 8)}; }
  __device__ Barrier turn(int group) const { return {base + unsigned(turns_at + group * 8)}; }
};

/// The stage that is next, and the parity of its round.
template <class F>
struct Turn {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage == F::stages) stage = 0, parity ^= 1;
  }
};

}  // namespace octet::cuda::tiles
