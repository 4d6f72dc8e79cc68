#pragma once

#include <type_traits>

#include "octet/numerics/math.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/ops/stored/codec.math.hpp"

// The update of parameters whose variables may have any storage, in groups of 128 values.

namespace octet::ops {

/// A parameter as the kernels hold it.
struct AdamWViews {
  StoredView value, grad, m, v;
  const float* gradient_amax;  // null if not needed
  float* maxima;               // [3] of the new value, m and v; null without scales per tensor
  std::uint64_t key;
  std::int64_t first;  // see AdamWParameter
  CutPositions places;
  float weight_decay;

  OCTET_HD StoredView& of(int variable) { return variable == 0 ? value : variable == 1 ? m : v; }
  OCTET_HD const StoredView& of(int variable) const { return variable == 0 ? value : variable == 1 ? m : v; }
};

/// The largest |m bias_correction1 / sqrt(v bias_correction2)| of exact moments. By Cauchy and Schwarz |m|^2 <= v (1 - beta1)^2 /
/// ((1 - beta2) (1 - r)) with r = beta1^2 / beta2, here at most 0.99.
OCTET_HD float direction_bound(const AdamWConstants& c, const AdamWStep& step) {
  return c.moments_ratio * step.bias_correction1 / math::sqrt(step.bias_correction2);
}

/// The descale with which the new values of a variable are stored. Of storages with a scale per tensor.
OCTET_HD float next_descale(const AdamWViews& p, int variable, const AdamWConstants& c, const AdamWStep& step) {
  const StoredView& s = p.of(variable);
  const float amax = static_cast<const float*>(s.scales)[1];
  float bound = 0;
  if (variable == 0) {
    bound = amax * (1.0f + step.learning_rate * p.weight_decay) + 2.0f * magnitude(step.learning_rate) * direction_bound(c, step);
  } else {
    const float g = *p.gradient_amax * magnitude(step.gradient_scale);
    bound = variable == 1 ? amax * c.beta1 + g * c.one_minus_beta1 : amax * c.beta2 + g * g * c.one_minus_beta2;
  }
  return tensor_descale_for(s.storage, bound * 0x1.00001p0f);  // the bound is rounded, too
}

/// After all groups: the scale and the maximum with which the next update reads a variable.
OCTET_HD void keep_tensor_scale(const AdamWViews& p, int variable, const AdamWConstants& c, const AdamWStep& step) {
  const StoredView& s = p.of(variable);
  const float descale = next_descale(p, variable, c, step);
  float* const scales = static_cast<float*>(s.scales);
  scales[1] = stored_amax(s.storage, p.maxima[variable], descale, rounds_stochastically(s.storage, AdamWVariable(variable)));
  scales[0] = descale;
}

/// One group; most[variable]: the largest new magnitude among the values of this lane, where a scale is per tensor.
/// load(view, x, variable) and store(view, x, variable) are load_group() and store_group(). The variable is a constant: 0 value, 1 m, 2 v,
/// 3 the gradient.
template <class Lanes, class Load, class Store>
OCTET_HD void adamw_group(Lanes lanes, const AdamWViews& p, const AdamWConstants& c, const AdamWStep& step, float (&most)[3],
                          const Load& load, const Store& store) {
  typename Lanes::Group g, x, m, v;
  constexpr std::integral_constant<int, 0> of_value{};
  constexpr std::integral_constant<int, 1> of_m{};
  constexpr std::integral_constant<int, 2> of_v{};
  constexpr std::integral_constant<int, 3> of_grad{};
  load(p.grad, g, of_grad), load(p.m, m, of_m), load(p.v, v, of_v), load(p.value, x, of_value);
  for (int i = 0; i < Lanes::packs; ++i) adamw_values(lanes, c, step, g.v[i], x.v[i], m.v[i], v.v[i]);
  if (scales_tensor(p.value.storage)) most[0] = larger(lanes.own_amax(x), most[0]);
  if (scales_tensor(p.m.storage)) most[1] = larger(lanes.own_amax(m), most[1]);
  if (scales_tensor(p.v.storage)) most[2] = larger(lanes.own_amax(v), most[2]);
  store(p.value, x, of_value), store(p.m, m, of_m), store(p.v, v, of_v);
}

/// The storages of one combination, known to the compiler.
template <Storage value_, Storage grad_, Storage m_, Storage v_>
struct KnownStorages {
  static constexpr Storage value = value_, grad = grad_, m = m_, v = v_;
  static constexpr Storage of_variable[] = {value, m, v, grad};
  OCTET_HD static void set(AdamWViews& p) { p.value.storage = value, p.grad.storage = grad, p.m.storage = m, p.v.storage = v; }
  OCTET_HD static bool is(const AdamWViews& p) {
    return p.value.storage == value && p.grad.storage == grad && p.m.storage == m && p.v.storage == v;
  }
};
// Those of the levels: 8-bit gradients; 8-bit moments also, with f32 and with FP16 values; and the same with the f32 gradients of embedding
// and head.
using WideMoments = KnownStorages<Storage::f32, Storage::e4m3, Storage::f32, Storage::f32>;
template <Storage value, Storage grad>
using NarrowMoments = KnownStorages<value, grad, Storage::e4m3, Storage::f16>;
/// f(KnownStorages<..>{}) for each of these.
template <class F>
void for_storages_of_levels(const F& f) {
  f(WideMoments{});
  f(NarrowMoments<Storage::f32, Storage::e4m3>{}), f(NarrowMoments<Storage::f32, Storage::f32>{});
  f(NarrowMoments<Storage::f16, Storage::e4m3>{}), f(NarrowMoments<Storage::f16, Storage::f32>{});
}

}  // namespace octet::ops
