#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cpu/pair.hpp"
#include "octet/tensor/cpu/parallel.hpp"

// With few rows, a product takes as long as reading b. A library that packs b into blocks reads it twice and writes it once.

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr int columns_at_once = 4;  // of d: as many rows of b are read side by side

// The order in which two registers of a type are loaded without moves between lanes.
template <class X>
inline constexpr PairOrder order_of = std::is_same_v<X, Bf16> ? PairOrder::interleaved : PairOrder::halves;

// sums[i] = sum_k a[k] b[i K + k] for `count` rows of b, in an order that K alone decides.
template <int count, class X>
OCTET_HD void dot_rows(std::int64_t K, const X* a, const X* b, float* sums) {
  Pair sum[count]{};
  std::int64_t k = 0;
  for (; k + pair_width <= K; k += pair_width) {
    const Pair x = load_pair<order_of<X>>(a + k);
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      const Pair w = load_pair<order_of<X>>(b + i * K + k);
      sum[i] = {fused_multiply_add(x.a, w.a, sum[i].a), fused_multiply_add(x.b, w.b, sum[i].b)};
    }
  }
  Lane{}.each(
      K,
      [&](auto at) {
#pragma GCC unroll 4
        for (int i = 0; i < count; ++i) sum[i].a = fused_multiply_add(Lane{}.load(a, at), Lane{}.load(b + i * K, at), sum[i].a);
      },
      k);
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) sums[i] = Lane{}.sum(sum[i].a + sum[i].b);
}

template <class X, class Y>
void multiply(const ops::FewRows& p) {
  constexpr std::int64_t strip = 64;
  const std::int64_t M = p.d.shape[0], N = p.d.shape[1], K = p.a.shape[1];
  for_each(ceil_div(N, strip), strip * K * std::int64_t(sizeof(X)), [&](std::int64_t job) {
    const std::int64_t end = (job + 1) * strip < N ? (job + 1) * strip : N;
    for (std::int64_t n = job * strip; n < end; n += columns_at_once) {
      const int count = end - n < columns_at_once ? int(end - n) : columns_at_once;
      for (std::int64_t m = 0; m < M; ++m) {
        float sums[columns_at_once];
        const X *const a = p.a.as<X>() + m * K, *const b = p.b.as<X>() + n * K;
        if (count == columns_at_once) dot_rows<columns_at_once>(K, a, b, sums);
        else
          for (int i = 0; i < count; ++i) dot_rows<1>(K, a, b + i * K, sums + i);
        for (int i = 0; i < count; ++i) {
          const float x = p.alpha * sums[i] + (p.bias != nullptr ? p.bias[n + i] : 0.0f);
          if constexpr (std::is_same_v<Y, float>) p.d.f32()[m * N + n + i] = x;
          else p.d.as<Y>()[m * N + n + i] = from_float<Y>(x);
        }
      }
    }
  });
}

}  // namespace

void multiply_few_rows(const ops::FewRows& p) {
  dispatch<float, Bf16, Fp16>(p.d.dtype, "multiply_few_rows", [&]<class Y>() {
    if (p.a.dtype == DType::bf16) multiply<Bf16, Y>(p);
    else multiply<float, Y>(p);
  });
}

}  // namespace octet::cpu::OCTET_ISA
