#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/promoted_schedule.cuh"
#include "octet/ops/gemm/wgmma.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/pack.cuh"

// A persistent kernel in clusters of two blocks of four warpgroups. One of them copies operands and scales by TMA, stages of 128 values
// of K ahead; data read by both blocks of the cluster is copied once, half by each. Three multiply, 64 x 128 sums each: while one promotes
// its sums to FP32, the tensor cores work for the others.

namespace octet::cuda {
namespace {

constexpr int depth = 128;  // values of K of a stage; a row of them is 128 bytes
constexpr int stages = 4;
constexpr int warpgroup = 128;  // threads
constexpr int groups = 3;       // warpgroups that multiply
constexpr int consumers = groups * warpgroup, threads = consumers + warpgroup;
constexpr int few_registers = 32, many_registers = 160;  // of a thread that copies, that multiplies: 65536 in all
constexpr int blocks = 2;                                // of a cluster
constexpr int group_rows = 64, tile_rows = groups * group_rows, tile_columns = 128;
constexpr int tile_bytes = (tile_rows + tile_columns) * depth, scale_bytes = (tile_rows + tile_columns) * int(sizeof(float));
constexpr int stage_bytes = tile_bytes + scale_bytes;
// On their way to d, a warp's sums are in shared memory, 16 x 32 at a time; the pitch keeps rows in different banks.
constexpr int chunk_columns = 32, chunk_pitch = 40, chunk_bytes = 16 * chunk_pitch * int(sizeof(float));
constexpr int staging_bytes = consumers / 32 * chunk_bytes;
// Two barriers per stage, and padding of the first address to a multiple of 1024.
constexpr int shared_bytes = stages * (stage_bytes + 2 * int(sizeof(std::uint64_t))) + staging_bytes + 1024;
constexpr int part_floats = tile_rows * tile_columns;

struct Job {
  CUtensorMap a, b, a_scale, b_scale;
  Schedule schedule;
  int M, N;
  int pair_rows, pair_columns;  // how many pairs of tiles, one pair per cluster, cover d
  bool shares_a;                // the tiles of a pair lie side by side and read the same rows of a; else one above the other
  bool accumulate, d_is_bf16;
  void* d;
  const float* bias;
  const float* b_squares;  // of b's 128 x 128 blocks, `squares_row` to a row, where it has those; else b_scale is used
  int squares_row;
  float* parts;     // [blocks of the grid, part_floats]: sums of pieces of tiles, as their threads hold them
  unsigned* ready;  // [blocks of the grid]: whether its part is there
};

// Where a block's tile of d begins.
struct Tile {
  int row, column;

  // Pairs are walked in panels of 8 rows of pairs, column by column, so that those made at the same time share operands in L2.
  __device__ Tile(const Job& job, int pair, unsigned rank) {
    constexpr int panel = 8;
    const int first = pair / (panel * job.pair_columns) * panel, rest = pair - first * job.pair_columns;
    const int height = min(panel, job.pair_rows - first);
    row = (first + rest % height) * (job.shares_a ? 1 : blocks), column = rest / height * (job.shares_a ? blocks : 1);
    (job.shares_a ? column : row) += int(rank);
    row *= tile_rows, column *= tile_columns;
  }
};

// The same x, opaque to the compiler, so that values derived from it are not kept in registers across tiles.
__device__ int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// The stages in shared memory and their barriers.
struct Stages {
  std::uint32_t base;
  __device__ std::uint32_t a(int stage) const { return base + stage * tile_bytes; }
  __device__ std::uint32_t b(int stage) const { return a(stage) + tile_rows * depth; }
  __device__ std::uint32_t a_scale(int stage) const { return base + stages * tile_bytes + stage * scale_bytes; }
  __device__ std::uint32_t b_scale(int stage) const { return a_scale(stage) + tile_rows * int(sizeof(float)); }
  __device__ std::uint32_t staging(int warp) const { return base + stages * stage_bytes + warp * chunk_bytes; }
  __device__ Barrier full(int stage) const { return {base + stages * stage_bytes + staging_bytes + stage * 8}; }
  __device__ Barrier empty(int stage) const { return {full(stage).at + stages * 8}; }
};

// The stage that is next, and the parity of its round.
struct Turn {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// The part of each stage that a producer thread copies: codes of one operand, or the scales of both. One thread alone is too slow.
enum Copies { codes_of_a, codes_of_b, scales, copies };

// `rows` rows of an operand in two boxes: both, or where the cluster shares the rows this block's one, to both blocks.
__device__ void copy_codes(std::uint32_t to, const CUtensorMap& from, int k, int row, int rows, bool shared, unsigned rank, Barrier full) {
  const int half = rows / 2;
  full.expect(unsigned(rows * depth));
  if (shared) return copy_box_to_both(to + rank * unsigned(half * depth), from, k * depth, row + int(rank) * half, full);
  copy_box(to, from, k * depth, row, full);
  copy_box(to + unsigned(half * depth), from, k * depth, row + half, full);
}

template <Copies what>
__device__ void produce(const Job& job, const Stages& stage, int cluster, unsigned rank) {
  Turn turn;
  Segment segment;
  for (Segments segments(job.schedule, cluster); segments.next(segment);) {
    const Tile tile(job, segment.tile, rank);
#pragma unroll 1
    for (int k = segment.begin; k < segment.end; ++k, turn.advance()) {
      stage.empty(turn.stage).wait(turn.parity ^ 1);
      const Barrier full = stage.full(turn.stage);
      if constexpr (what == codes_of_a) {
        copy_codes(stage.a(turn.stage), job.a, k, tile.row, tile_rows, job.shares_a, rank, full);
      } else if constexpr (what == codes_of_b) {
        copy_codes(stage.b(turn.stage), job.b, k, tile.column, tile_columns, !job.shares_a, rank, full);
      } else {
        full.expect(unsigned(job.b_squares == nullptr ? scale_bytes : tile_rows * int(sizeof(float))));
        copy_box(stage.a_scale(turn.stage), job.a_scale, tile.row, k, full);
        if (job.b_squares == nullptr) copy_box(stage.b_scale(turn.stage), job.b_scale, tile.column, k, full);
      }
    }
  }
}

__device__ float load_shared(std::uint32_t at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at));
  return x;
}
__device__ float2 load_shared_pair(std::uint32_t at) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at));
  return x;
}

// sum += scale fresh for one of this thread's two rows: one after another, which reduces register reads.
__device__ void add_row(WgmmaSums& sum, const WgmmaSums& fresh, int row, float scale) {
#pragma unroll
  for (int i = 2 * row; i < 64; i += 4) {
    sum[i] = __fmaf_rn(fresh[i], scale, sum[i]);
    sum[i + 1] = __fmaf_rn(fresh[i + 1], scale, sum[i + 1]);
  }
}

// sum += a_scale b_scale fresh, for 64 x 128 sums. The addresses are those of this thread's first row and column; or one scale is all b's.
__device__ void promote(WgmmaSums& sum, WgmmaSums& fresh, std::uint32_t a_scale, std::uint32_t b_scale) {
  const float upper = load_shared(a_scale), lower = load_shared(a_scale + 8 * 4);
#pragma unroll
  for (int i = 0; i < 64; i += 4) {
    const float2 s = load_shared_pair(b_scale + i * 2 * 4);
    fresh[i] *= s.x, fresh[i + 2] *= s.x, fresh[i + 1] *= s.y, fresh[i + 3] *= s.y;
  }
  add_row(sum, fresh, 0, upper), add_row(sum, fresh, 1, lower);
}
__device__ void promote(WgmmaSums& sum, const WgmmaSums& fresh, std::uint32_t a_scale, float b_scale) {
  add_row(sum, fresh, 0, load_shared(a_scale) * b_scale), add_row(sum, fresh, 1, load_shared(a_scale + 8 * 4) * b_scale);
}

// Adds a segment's sums. `square`: b's blocks are 128 x 128 and b_squares the scales of those in this tile.
template <class A, class B, bool square>
__device__ void multiply(WgmmaSums& sum, const Stages& stage, Segment segment, Turn& turn, const float* b_squares) {
  const int thread = int(threadIdx.x), lane = thread % 32;
  const int group = __shfl_sync(~0u, thread / warpgroup, 0);  // known to be the same in a warp
  const WgmmaMatrix all_a = WgmmaMatrix::at(stage.a(0) + unsigned(group * group_rows * depth)), all_b = WgmmaMatrix::at(stage.b(0));
  const std::uint32_t a_scale = stage.a_scale(0) + unsigned(thread / 32 * 16 + lane / 4) * 4;
  const std::uint32_t b_scale = stage.b_scale(0) + unsigned(lane % 4 * 2) * 4;
  WgmmaSums fresh;
  float next = square ? __ldg(b_squares + segment.begin) : 0.0f;
#pragma unroll 1
  for (int k = segment.begin; k < segment.end; ++k, turn.advance()) {
    const float b_square = next;
    if (square && k + 1 < segment.end) next = __ldg(b_squares + k + 1);
    const WgmmaMatrix a = all_a.after(unsigned(turn.stage * tile_bytes)), b = all_b.after(unsigned(turn.stage * tile_bytes));
    stage.full(turn.stage).wait(turn.parity);
    wgmma_begin(fresh);
#pragma unroll
    for (int i = 0; i < depth / 32; ++i) wgmma<A, B>(fresh, a.after(32 * i), b.after(32 * i), i > 0);
    wgmma_commit();
    wgmma_wait(fresh);
    const std::uint32_t at = unsigned(turn.stage * scale_bytes);
    if constexpr (square) promote(sum, fresh, a_scale + at, b_square);
    else promote(sum, fresh, a_scale + at, b_scale + at);
    __syncwarp();
    if (lane < blocks) stage.empty(turn.stage).arrive_at(unsigned(lane));
  }
}

// Sums of a piece of a tile go to memory, for the cluster that finishes the tile.
__device__ void leave_part(const Job& job, const WgmmaSums& sum, int thread) {
  float4* const to = reinterpret_cast<float4*>(job.parts + std::int64_t(blockIdx.x) * part_floats) + thread;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float* s = &sum[4 * i];
    __stcg(to + i * consumers, make_float4(s[0], s[1], s[2], s[3]));
  }
  __threadfence();
  sync_threads_of(1, consumers);
  if (thread == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(job.ready + blockIdx.x) : "memory");
}

__device__ void add_part(const Job& job, WgmmaSums& sum, unsigned block, int thread) {
  if (thread == 0) {
    unsigned ready = 0;
    while (ready == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(job.ready + block) : "memory");
  }
  sync_threads_of(1, consumers);
  const float4* const from = reinterpret_cast<const float4*>(job.parts + std::int64_t(block) * part_floats) + thread;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float4 x = __ldcg(from + i * consumers);
    float* s = &sum[4 * i];
    s[0] += x.x, s[1] += x.y, s[2] += x.z, s[3] += x.w;
  }
}

// Through shared memory, 16 x 32 sums of a warp at a time become whole lines of d.
__device__ void stage_chunk(const WgmmaSums& sum, int chunk, std::uint32_t at, int lane) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float* s = &sum[16 * chunk + 4 * j];
    const std::uint32_t to = at + unsigned(lane / 4 * chunk_pitch + j * 8 + lane % 4 * 2) * 4;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(s[0]), "f"(s[1]) : "memory");
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + 8 * chunk_pitch * 4), "f"(s[2]), "f"(s[3]) : "memory");
  }
}
__device__ Pack<4> load_shared_four(std::uint32_t at) {
  Pack<4> x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.v[0]), "=f"(x.v[1]), "=f"(x.v[2]), "=f"(x.v[3]) : "r"(at) : "memory");
  return x;
}

// d = or += sum (+ bias) for a warp's 16 x 128 sums, the first of which is d[row, column]. A lane has 4 values of every fourth row.
template <class T>
__device__ void write_rows(const Job& job, const WgmmaSums& sum, int row, int column, int N, std::uint32_t staging, int lane) {
  row += lane / 8, column += lane % 8 * 4;
  T* const d = static_cast<T*>(job.d) + std::int64_t(row) * N + column;
  const std::int64_t step = 4 * std::int64_t(N);
  const auto inside = [&](int chunk, int i) { return row + 4 * i < job.M && column + chunk * chunk_columns < N; };
  Pack<4> old[2][4];  // of this chunk and the next
  const auto fetch = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      old[chunk % 2][i] = job.accumulate && inside(chunk, i) ? load<4>(d, i * step + chunk * chunk_columns) : Pack<4>::all(0.0f);
  };
  fetch(0);
#pragma unroll
  for (int chunk = 0; chunk < 4; ++chunk) {
    if (chunk < 3) fetch(chunk + 1);
    stage_chunk(sum, chunk, staging, lane);
    __syncwarp();
    const int here = column + chunk * chunk_columns;
    const Pack<4> bias = job.bias != nullptr && here < N ? load<4>(job.bias, here) : Pack<4>::all(0.0f);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Pack<4> x = load_shared_four(staging + unsigned((lane / 8 + 4 * i) * chunk_pitch + lane % 8 * 4) * 4);
      if (inside(chunk, i)) store(d, i * step + chunk * chunk_columns, old[chunk % 2][i] + (x + bias));
    }
    __syncwarp();
  }
}

template <class A, class B>
__device__ void consume(const Job& job, const Stages& stage, int cluster, unsigned rank) {
  Turn turn;
  Segment segment;
  for (Segments segments(job.schedule, cluster); segments.next(segment);) {
    WgmmaSums sum = {};
    if (job.b_squares == nullptr) {
      multiply<A, B, false>(sum, stage, segment, turn, nullptr);
    } else {
      const int column = min(Tile(job, segment.tile, rank).column, job.N - 1);  // a pair's second tile may lie beyond d
      multiply<A, B, true>(sum, stage, segment, turn, job.b_squares + column / depth * job.squares_row);
    }
    const int thread = anew(int(threadIdx.x));
    if (segment.begin > 0) {
      leave_part(job, sum, thread);
      continue;
    }
    const int tile_end = (segment.tile + 1) * job.schedule.k_blocks;
    if (segment.end < job.schedule.k_blocks)
      for (int other = cluster + 1; job.schedule.piece(other) < tile_end; ++other)
        add_part(job, sum, unsigned(blocks * other) + rank, thread);
    const Tile tile(job, segment.tile, rank);
    const int row = tile.row + thread / 32 * 16, N = anew(job.N);
    const std::uint32_t staging = stage.staging(thread / 32);
    if (job.d_is_bf16) write_rows<Bf16>(job, sum, row, tile.column, N, staging, thread % 32);
    else write_rows<float>(job, sum, row, tile.column, N, staging, thread % 32);
  }
}

template <class A, class B>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads, 1) promoted_kernel(const __grid_constant__ Job job) {
  extern __shared__ std::uint8_t memory[];
  const Stages stage{std::uint32_t(anew(int(shared_address(memory) + 1023))) / 1024 * 1024};
  const unsigned rank = cluster_rank();
  const int cluster = int(blockIdx.x / blocks);
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) stage.full(i).init(copies), stage.empty(i).init(blocks * consumers / 32);
    fence_barriers();
  }
  cluster_sync();
  if (threadIdx.x >= consumers) {
    fewer_registers<few_registers>();
    if (threadIdx.x == consumers) produce<codes_of_a>(job, stage, cluster, rank);
    if (threadIdx.x == consumers + 32) produce<codes_of_b>(job, stage, cluster, rank);
    if (threadIdx.x == consumers + 64) produce<scales>(job, stage, cluster, rank);
  } else {
    more_registers<many_registers>();
    consume<A, B>(job, stage, cluster, rank);
  }
  __syncwarp();
  cluster_sync();  // until then the other block's copies and arrivals may come here
}

// How many pairs of tiles cover d, and whether they lie side by side or, where that is fewer, one above the other.
struct Division {
  int rows, columns;
  bool shares_a;

  static Division of(std::int64_t M, std::int64_t N) {
    const Division side_by_side{int(ceil_div(M, tile_rows)), int(ceil_div(N, blocks * tile_columns)), true};
    const Division stacked{int(ceil_div(M, blocks * tile_rows)), int(ceil_div(N, tile_columns)), false};
    return stacked.count() < side_by_side.count() ? stacked : side_by_side;
  }
  int count() const { return rows * columns; }
};

template <class A, class B>
void launch(Queue queue, const Job& job) {
  const auto kernel = promoted_kernel<A, B>;
  allow_shared(kernel, shared_bytes);
  kernel<<<unsigned(blocks * job.schedule.clusters), threads, shared_bytes, queue>>>(job);
  launched("promoted gemm");
}

// A cluster may wait for the sums of another, so all must run at once. Kernels of other formats take the same space.
int resident_clusters() {
  static const int found = clusters_at_once(promoted_kernel<E4M3, E4M3>, facts().multiprocessors / blocks, blocks, threads, shared_bytes);
  return found;
}

CUtensorMap codes_map(const Quantized& q, int rows_of_tile) {
  return tensor_map(q.codes.data, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, q.rows(), q.cols(), q.cols(), unsigned(rows_of_tile / 2), depth, true);
}
CUtensorMap scales_map(const Quantized& q, int rows_of_tile) {
  const Shape s = q.descales.shape;
  return tensor_map(q.descales.data, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, s[0], q.rows(), s[1], 1, unsigned(rows_of_tile), false);
}

Job job_of(const ops::Gemm& g, const Tensor& workspace) {
  const bool square = g.b.block.rows == 128;
  const Division by = Division::of(g.d.shape[0], g.d.shape[1]);
  const int clusters = resident_clusters(), grid = blocks * clusters;
  const std::size_t part_bytes = std::size_t(grid) * part_floats * sizeof(float), ready_bytes = std::size_t(grid) * sizeof(unsigned);
  const bool may_cut = workspace.bytes() >= part_bytes + ready_bytes;
  return {.a = codes_map(g.a, tile_rows),
          .b = codes_map(g.b, tile_columns),
          .a_scale = scales_map(g.a, tile_rows),
          .b_scale = square ? CUtensorMap{} : scales_map(g.b, tile_columns),
          .schedule = Schedule::of(by.count(), int(ceil_div(g.a.cols(), depth)), clusters, may_cut),
          .M = int(g.d.shape[0]),
          .N = int(g.d.shape[1]),
          .pair_rows = by.rows,
          .pair_columns = by.columns,
          .shares_a = by.shares_a,
          .accumulate = g.accumulate,
          .d_is_bf16 = g.d.dtype == DType::bf16,
          .d = g.d.data,
          .bias = g.bias.f32(),
          .b_squares = square ? g.b.descales.f32() : nullptr,
          .squares_row = square ? int(g.b.descales.shape[1]) : 0,
          .parts = workspace.as<float>(),
          .ready = reinterpret_cast<unsigned*>(workspace.u8() + part_bytes)};
}

bool aligned(const ops::Gemm& g) {
  std::uintptr_t all = 0;
  for (const void* p : {g.a.codes.data, g.b.codes.data, g.a.descales.data, g.b.descales.data, g.d.data, g.bias.data})
    all |= reinterpret_cast<std::uintptr_t>(p);
  return all % 16 == 0;
}

}  // namespace

bool promoted_gemm(Queue queue, const ops::Gemm& g, const Tensor& workspace) {
  if (facts().major != 9 || !aligned(g)) return false;
  const Job job = job_of(g, workspace);
  const std::size_t ready_bytes = std::size_t(blocks * job.schedule.clusters) * sizeof(unsigned);
  if (job.schedule.split > 0) require(cudaMemsetAsync(job.ready, 0, ready_bytes, queue), "cudaMemsetAsync");
  dispatch<E4M3, E5M2>(g.a.codes.dtype, "gemm",
                       [&]<class A>() { dispatch<E4M3, E5M2>(g.b.codes.dtype, "gemm", [&]<class B>() { launch<A, B>(queue, job); }); });
  return true;
}

}  // namespace octet::cuda
