#pragma once

#include <cmath>

#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"
#include "octet/ops/adamw/adamw.hpp"

namespace octet::ops {

/// The constants of one launch in the type of the arithmetic; 1 - beta is taken before rounding.
struct AdamWConstants {
  float beta1, beta2, one_minus_beta1, one_minus_beta2, eps, weight_decay;
  float moments_ratio;  // the largest |m| / sqrt(v) of exact moments, see direction_bound()
  OCTET_HD AdamWConstants(const AdamW& a, double decay)
      : beta1(float(a.beta1)),
        beta2(float(a.beta2)),
        one_minus_beta1(float(1 - a.beta1)),
        one_minus_beta2(float(1 - a.beta2)),
        eps(float(a.eps)),
        weight_decay(float(decay)),
        moments_ratio(a.direction_bound > 0 ? float(a.direction_bound) : ratio_of(a.beta1, a.beta2)) {}
  OCTET_HD static float ratio_of(double beta1, double beta2) {
    const double r = beta1 * beta1 < 0.99 * beta2 ? beta1 * beta1 / beta2 : 0.99;
    return float((1 - beta1) / ::sqrt((1 - beta2) * (1 - r)));
  }
};

/// The random words of one variable (0 value, 1 m, 2 v) in one update: BF16 needs 16 bits per draw, so four words serve eight elements.
struct AdamWDraws {
  std::uint64_t key = 0, update = 0;
  std::int64_t first = 0;  // element number of the value at 0
  OCTET_HD std::uint64_t stream(int variable) const { return 4 * update + std::uint64_t(variable); }

  template <class Lanes, class Cursor, class X>
  OCTET_HD void store(Lanes lanes, Bf16* p, Cursor at, X x, int variable) const {
    lanes.store_drawn(p, at, x, [&](std::int64_t eight) { return philox(key, std::uint64_t(eight + first / 8), stream(variable)); });
  }
};

/// draw(e / 8) of the eight values from number `at` of a part on, each with the bits of its element e of the whole.
template <class Draw>
OCTET_HD RandomWords words_at(const CutPositions& places, std::int64_t at, const Draw& draw) {
  const std::int64_t first = places(at);
  if (first % 8 == 0 && places(at + 7) == first + 7) return draw(first / 8);
  RandomWords out{}, drawn{};
  std::int64_t counter = -1;
#ifdef __CUDACC__
#pragma unroll 1
#endif
  for (int i = 0; i < 8; ++i) {
    const std::int64_t e = places(at + i);
    if (e / 8 != counter) counter = e / 8, drawn = draw(counter);
    const int from = int(e % 8) / 2;  // words are chosen, not indexed, so that they stay in registers
    const std::uint32_t word = from < 2 ? (from == 0 ? drawn.w[0] : drawn.w[1]) : (from == 2 ? drawn.w[2] : drawn.w[3]);
    const std::uint32_t half = (word >> (e % 2 * 16) & 0xFFFF) << (i % 2 * 16);
    for (int to = 0; to < 4; ++to) out.w[to] |= i / 2 == to ? half : 0;
  }
  return out;
}

/// Those of a part of a larger parameter.
struct AdamWPlacedDraws : AdamWDraws {
  CutPositions places;

  template <class Lanes, class Cursor, class X>
  OCTET_HD void store(Lanes lanes, Bf16* p, Cursor at, X x, int variable) const {
    lanes.store_drawn(p, at, x, [&](std::int64_t eight) {
      return words_at(places, first + 8 * eight, [&](std::int64_t e) { return philox(key, std::uint64_t(e), stream(variable)); });
    });
  }
};

/// Stores x: exactly in f32, stochastically rounded in bf16.
template <class Lanes, class P, class Cursor, class X, class Draws>
OCTET_HD void store_state(Lanes lanes, P* p, Cursor at, X x, const Draws&, int) {
  lanes.store(p, at, x);
}
template <class Lanes, class Cursor, class X, class Draws>
OCTET_HD void store_state(Lanes lanes, Bf16* p, Cursor at, X x, const Draws& draws, int variable) {
  draws.store(lanes, p, at, x, variable);
}

/// mean / (sqrt(square) + eps); lanes may have a faster way to the same bits.
template <class Lanes, class X>
OCTET_HD auto direction_of(Lanes lanes, const X& mean, const X& square, float eps) {
  if constexpr (requires { lanes.over_root(mean, square, eps); }) return lanes.over_root(mean, square, eps);
  else return mean / (lanes.sqrt(square) + eps);
}

/// The moments and the value after one update, of the values before it. Formula in adamw.hpp.
template <class Lanes, class X>
OCTET_HD void adamw_values(Lanes lanes, const AdamWConstants& c, const AdamWStep& step, const X& grad, X& value, X& m, X& v) {
  const auto g = grad * step.gradient_scale;
  m = m * c.beta1 + g * c.one_minus_beta1;
  v = v * c.beta2 + g * g * c.one_minus_beta2;
  const X direction = direction_of(lanes, X(m * step.bias_correction1), X(v * step.bias_correction2), c.eps);
  value = value - (direction + value * c.weight_decay) * step.learning_rate;
}

/// The update of the values under one cursor, of plain f32 and bf16.
template <class Lanes, class Cursor, class G, class P, class M, class V, class Draws = AdamWDraws>
OCTET_HD void adamw_update(Lanes lanes, Cursor at, const AdamWConstants& c, const AdamWStep& step, const G* grad, P* value, M* m, V* v,
                           const Draws& draws = {}) {
  const auto g = lanes.load(grad, at);
  auto mean = lanes.load(m, at), square = lanes.load(v, at), x = lanes.load(value, at);
  adamw_values(lanes, c, step, g, x, mean, square);
  store_state(lanes, value, at, x, draws, 0);
  store_state(lanes, m, at, mean, draws, 1);
  store_state(lanes, v, at, square, draws, 2);
}

}  // namespace octet::ops
