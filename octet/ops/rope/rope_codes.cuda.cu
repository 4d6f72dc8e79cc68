#include "octet/ops/quantize/cuda/tile_codes.cuh"
#include "octet/ops/rope/rope.math.hpp"
#include "octet/ops/rope/rope_codes.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int rope_threads = 256, blocks_per_multiprocessor = 8;

// The heads of a matrix of bf16. Threads side by side go over the heads of a token: queries, keys, values.
struct Heads {
  Bf16* qkv;
  const float *cos, *sin;
  const std::int32_t* starts;
  std::int64_t pieces;               // of all tokens: 8 pairs of columns of a head each
  unsigned columns, half, sequence;  // of a row; of half a head
  unsigned per_head, per_token;      // pieces
  unsigned queries, turned;          // heads before the first key, and before the first value
  SequencePart part;

  explicit Heads(const ops::RopeForward& a)
      : qkv(a.qkv.bf16()),
        cos(a.table.cos.f32()),
        sin(a.table.sin.f32()),
        starts(a.document_starts.as<std::int32_t>()),
        pieces(a.qkv.count() / 16),
        columns(unsigned(a.heads.columns())),
        half(unsigned(a.heads.head_dim) / 2),
        sequence(unsigned(a.heads.sequence)),
        per_head(half / 8),
        per_token(columns / 16),
        queries(unsigned(a.heads.heads)),
        turned(unsigned(a.heads.heads + a.heads.kv_heads)),
        part(a.heads.part) {}
};

// A piece: the place of its first half in the matrix, its group, and both halves, rounded as the matrix stores them.
struct Piece {
  std::int64_t at;
  int group;
  Eight<Bf16> low, high;
};
__device__ __forceinline__ Piece piece_of(const Heads& h, std::int64_t i) {
  const unsigned in_token = unsigned(i % h.per_token), head = in_token / h.per_head, col = in_token % h.per_head * 8;
  const std::int64_t token = i / h.per_token;
  Piece p;
  p.at = token * h.columns + head * 2 * h.half + col;
  p.group = head < h.queries ? 0 : head < h.turned ? 1 : 2;
  const Bf16* const x = h.qkv + p.at - col;
  if (p.group == 2) {
    p.low = Eight<Bf16>::at(x + col), p.high = Eight<Bf16>::at(x + h.half + col);
    return p;
  }
  const unsigned place = unsigned(h.part.place(unsigned(token % h.sequence), h.sequence));
  const std::int64_t angles = std::int64_t(place - (h.starts != nullptr ? unsigned(h.starts[token]) : 0)) * h.half;
  Pack<8> turned[2];
  ops::rope_head<false>(PackLanes<8>{col}, h.half, x, h.cos + angles, h.sin + angles, Kept<8>{&turned[0], &turned[1]});
  p.low = Eight<Bf16>::of(turned[0]), p.high = Eight<Bf16>::of(turned[1]);
  return p;
}

// The maxima of a thread's pieces, by group.
struct Tops3 {
  Tops<Bf16> of[3];
  __device__ __forceinline__ void raise(const Piece& p) {
#pragma unroll
    for (int g = 0; g < 3; ++g)
      if (p.group == g) of[g].raise(p.low), of[g].raise(p.high);
  }
  __device__ __forceinline__ float warp_top(int g) const {
    float top = of[g].top();
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    return top;
  }
};

struct Codes {
  std::uint8_t* to;
  const float* scale[3];
  float* amax[3];
};

template <class Format>
__global__ void __launch_bounds__(rope_threads) rope_codes_kernel(Heads h, Codes codes) {
  Tops3 tops;
  const float scales[3] = {__ldg(codes.scale[0]), __ldg(codes.scale[1]), __ldg(codes.scale[2])};
  const std::int64_t step = std::int64_t(gridDim.x) * rope_threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rope_threads + threadIdx.x; i < h.pieces; i += step) {
    const Piece p = piece_of(h, i);
    const float scale = p.group == 0 ? scales[0] : p.group == 1 ? scales[1] : scales[2];
    const auto scale_of = [scale](int) { return scale; };
    *reinterpret_cast<uint2*>(codes.to + p.at) = encode_eight<Format>(p.low, scale_of);
    *reinterpret_cast<uint2*>(codes.to + p.at + h.half) = encode_eight<Format>(p.high, scale_of);
    tops.raise(p);
  }
#pragma unroll
  for (int g = 0; g < 3; ++g) {
    const float top = tops.warp_top(g);
    if (threadIdx.x % 32 == 0 && codes.amax[g] != nullptr && top > 0) raise(codes.amax[g], top);
  }
}

__global__ void __launch_bounds__(rope_threads) rope_maxima_kernel(Heads h, float* maxima) {
  Tops3 tops;
  const std::int64_t step = std::int64_t(gridDim.x) * rope_threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rope_threads + threadIdx.x; i < h.pieces; i += step) {
    const Piece p = piece_of(h, i);
    if (p.group != 2) p.low.put(h.qkv + p.at), p.high.put(h.qkv + p.at + h.half);
    tops.raise(p);
  }
#pragma unroll
  for (int g = 0; g < 3; ++g) {
    const float top = tops.warp_top(g);
    if (threadIdx.x % 32 == 0 && top > 0) raise(maxima + g, top);
  }
}

unsigned blocks_of(const Heads& h) {
  const std::int64_t wanted = ceil_div(h.pieces, std::int64_t(rope_threads)), most = facts().multiprocessors * blocks_per_multiprocessor;
  return unsigned(wanted < most ? wanted : most);
}

}  // namespace

void rope_codes(Queue queue, const ops::RopeCodes& a) {
  const Heads h(a.rope);
  Codes codes{.to = a.codes.u8()};
  for (std::size_t g = 0; g < 3; ++g) codes.scale[g] = a.groups[g].spec.scale.f32(), codes.amax[g] = a.groups[g].spec.amax.f32();
  if (a.codes.dtype == DType::e5m2) rope_codes_kernel<E5M2><<<blocks_of(h), rope_threads, 0, queue>>>(h, codes);
  else rope_codes_kernel<E4M3><<<blocks_of(h), rope_threads, 0, queue>>>(h, codes);
  launched("rope_codes_kernel");
}

void rope_maxima(Queue queue, const ops::RopeForward& a, const Tensor& maxima) {
  const Heads h(a);
  rope_maxima_kernel<<<blocks_of(h), rope_threads, 0, queue>>>(h, maxima.f32());
  launched("rope_maxima_kernel");
}

}  // namespace octet::cuda
