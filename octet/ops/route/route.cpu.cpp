#include "octet/ops/route/route.kernels.hpp"
#include "octet/ops/route/route.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void route_forward(const ops::Routing& r, const ops::RouteForward& a) {
  const std::int64_t experts = a.logits.shape[1], choices = r.choices;
  for_each(a.logits.shape[0], experts * 4 * (8 + choices), [&](std::int64_t t) {
    ops::route_row(ops::WholeToken<float>{}, r, t, experts, a.logits.f32() + t * experts, a.bias.f32(),
                   a.chosen.as<std::int32_t>() + t * choices, a.weights.f32() + t * choices, a.scores.f32() + t * experts);
  });
}

void route_backward(const ops::Routing& r, const ops::RouteBackward& a) {
  const std::int64_t tokens = a.logits.shape[0], experts = a.logits.shape[1], choices = r.choices;
  const float z_loss = a.z_scale ? a.z_loss * *a.z_scale.f32() : a.z_loss;
  for_each(tokens, experts * 4 * (8 + choices), [&](std::int64_t t) {
    const ops::WholeToken<float> lanes;
    const float* const scores = a.scores.f32() + t * experts;
    const auto ds =
        ops::score_gradient<float>(lanes, r, experts, scores, a.chosen.as<std::int32_t>() + t * choices, a.dweights.f32() + t * choices,
                                   a.dscores ? a.dscores.f32() + (a.rows.first + t) / a.rows.length * experts : nullptr, a.relative);
    ops::route_backward_row(lanes, r, experts, a.logits.f32() + t * experts, ds, scores, z_loss, a.dlogits.f32() + t * experts);
  });
}

void route_load(const ops::RouteLoad& a, const Tensor&) {
  constexpr std::int64_t most_experts = 1024;
  const std::int64_t experts = a.scores.shape[1], sequences = a.counts.shape[0], length = a.rows.length, choices = a.chosen.shape[1];
  for_each(sequences, length * experts * 4, [&](std::int64_t s) {
    float *const counts = a.counts.f32() + s * experts, *const sums = a.sums.f32() + s * experts;
    const ops::RowRange rows = ops::rows_of_sequence(a.rows, s, a.scores.shape[0]);
    for (std::int64_t begin = rows.first; begin < rows.end; begin += ops::route_strip) {
      float strip[most_experts], of_strip[most_experts];  // sums and counts
      for (std::int64_t e = 0; e < experts; ++e) strip[e] = of_strip[e] = 0;
      for (std::int64_t t = begin; t < rows.end && t < begin + ops::route_strip; ++t) {
        const float* const p = a.scores.f32() + t * experts;
        const float total = a.relative ? ops::WholeToken<float>{}.sum(experts, [&](std::int64_t e) { return p[e]; }) : 1.0f;
        for (std::int64_t e = 0; e < experts; ++e) strip[e] += p[e] / total;
        const auto* const chosen = a.chosen.as<std::int32_t>() + t * choices;
        for (std::int64_t k = 0; k < choices; ++k)
          if (chosen[k] >= 0 && chosen[k] < experts) of_strip[chosen[k]] += 1;
      }
      for (std::int64_t e = 0; e < experts; ++e) sums[e] += strip[e], counts[e] += of_strip[e];
    }
  });
}

}  // namespace octet::cpu::OCTET_ISA
