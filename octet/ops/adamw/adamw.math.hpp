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
        moments_ratio(ratio_of(a.beta1, a.beta2)) {}
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
