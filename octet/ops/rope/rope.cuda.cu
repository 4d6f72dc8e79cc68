#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/rope/rope.kernels.hpp"
#include "octet/ops/rope/rope.math.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/tensor/cuda/early.cuh"

namespace octet::cuda {
namespace {

constexpr int heads_a_thread = 2;

/// In place: a thread turns N pairs of up to two heads of a token, so that the angles are read once for them. Threads side by side go over
/// the heads of a token before the next token.
template <bool opposite, class T, int N>
__global__ void rope_kernel(unsigned threads, unsigned columns, ops::QkvShape shape, const float* cos, const float* sin,
                            const std::int32_t* starts, const std::int32_t* places, T* qkv) {
  let_later_work_begin();
  wait_for_earlier_work();
  const unsigned half = unsigned(shape.head_dim) / 2, packs = half / N, i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned heads = unsigned(shape.heads + shape.kv_heads), groups = (heads + heads_a_thread - 1) / heads_a_thread;
  const unsigned group = i / packs, at = (i - group * packs) * N, token = group / groups, first = (group - token * groups) * heads_a_thread;
  if (i >= threads) return;
  const unsigned place = places != nullptr ? unsigned(places[token]) : unsigned(shape.place(token % unsigned(shape.sequence)));
  const unsigned angles = (place - (starts != nullptr ? unsigned(starts[token]) : 0)) * half;
  T* const row = qkv + std::int64_t(token) * columns + first * unsigned(shape.head_dim);
  Pack<N> turned[heads_a_thread][2];
#pragma unroll
  for (unsigned h = 0; h < heads_a_thread; ++h) {
    if (first + h >= heads) continue;
    ops::rope_head<opposite>(PackLanes<N>{at}, half, row + h * unsigned(shape.head_dim), cos + angles, sin + angles,
                             Kept<N>{&turned[h][0], &turned[h][1]});
  }
#pragma unroll
  for (unsigned h = 0; h < heads_a_thread; ++h) {
    if (first + h >= heads) continue;
    T* const head = row + h * unsigned(shape.head_dim);
    store(head, at, turned[h][0]), store(head + half, at, turned[h][1]);
  }
}

bool aligned_pairs(const Tensor& qkv, const ops::QkvShape& heads, const ops::RopeTable& table) {
  return heads.head_dim % 16 == 0 && packs_of_eight(qkv) && packs_of_eight(table.cos) && packs_of_eight(table.sin);
}

template <bool opposite>
void turn_in_place(Queue queue, const Tensor& qkv, const ops::QkvShape& heads, const ops::RopeTable& table, const Tensor& starts,
                   const Tensor& places = {}) {
  const std::int64_t tokens = qkv.shape[0];
  if (tokens == 0) return;
  dispatch<float, Bf16, Fp16>(qkv.dtype, "rope", [&]<class T>() {
    const auto run = [&]<int N>() {
      constexpr int block = 256;
      const std::int64_t groups = ceil_div(heads.heads + heads.kv_heads, heads_a_thread),
                         threads = tokens * groups * (heads.head_dim / 2 / N);
      check(threads < (std::int64_t(1) << 32), "rope: {} tokens are too many", tokens);
      const Blocks blocks{.grid = dim3(unsigned(ceil_div(threads, block))), .threads = block, .early = tokens <= early_rows};
      launch_early("rope_kernel", rope_kernel<opposite, T, N>, blocks, queue, unsigned(threads), unsigned(heads.columns()), heads,
                   table.cos.f32(), table.sin.f32(), starts.as<std::int32_t>(), places.as<std::int32_t>(), qkv.as<T>());
    };
    if (aligned_pairs(qkv, heads, table)) run.template operator()<8>();
    else run.template operator()<1>();
  });
}

template <class T>
struct RopeGradient {
  static constexpr int outputs = 1;
  const T* dqkv;
  const float *cos, *sin;
  const std::int32_t* starts;
  unsigned columns, turned_columns, head_dim, sequence;
  SequencePart part;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const T* const from = row_of(dqkv, row, int(columns));
    if (col >= turned_columns) {
      out[0] = load<N>(from, col);
      return;
    }
    const unsigned half = head_dim / 2, in_head = unsigned(col) % head_dim;
    const bool first = in_head < half;
    const unsigned place = unsigned(part.place(unsigned(row) % sequence, sequence));
    const std::int64_t angles = std::int64_t(place - (starts != nullptr ? unsigned(starts[row]) : 0)) * half;
    Pack<N> pair[2];
    ops::rope_head<true>(PackLanes<N>{first ? in_head : in_head - half}, half, from + col - in_head, cos + angles, sin + angles,
                         Kept<N>{&pair[0], &pair[1]});
#pragma unroll
    for (int i = 0; i < N; ++i) out[0].v[i] = first ? pair[0].v[i] : pair[1].v[i];
  }
};

}  // namespace

void rope_forward(Queue queue, const ops::RopeForward& a) {
  turn_in_place<false>(queue, a.qkv, a.heads, a.table, a.document_starts, a.places);
}

void rope_backward(Queue queue, const ops::RopeBackward& a) {
  if (a.dqkv.data == a.y.plain.data) {
    turn_in_place<true>(queue, a.dqkv, a.heads, a.table, a.document_starts);
    if (a.y.spec.quantizes()) quantize(queue, a.dqkv, a.y, {});
    return;
  }
  dispatch<float, Bf16, Fp16>(a.dqkv.dtype, "rope", [&]<class T>() {
    const RopeGradient<T> make{a.dqkv.as<T>(),
                               a.table.cos.f32(),
                               a.table.sin.f32(),
                               a.document_starts.as<std::int32_t>(),
                               unsigned(a.heads.columns()),
                               unsigned(a.heads.value_column(0)),
                               unsigned(a.heads.head_dim),
                               unsigned(a.heads.sequence),
                               a.heads.part};
    fill_sink<T>(queue, a.y, make, aligned_pairs(a.dqkv, a.heads, a.table));
  });
}

}  // namespace octet::cuda
