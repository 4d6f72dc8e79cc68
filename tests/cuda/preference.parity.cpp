#include <cmath>
#include <limits>

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/ops/preference/preference.hpp"
#include "tests/cuda/parity.hpp"

// The loss of pairs of answers, and the gradient of cross-entropies with its weights.

namespace octet::parity {
namespace {

// Answers of `length` tokens and fewer, side by side; each fourth place is not used, and one reference is not known.
std::vector<std::int32_t> places_of(std::int64_t pairs, std::int64_t length) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto at = std::int32_t(2 * i * length), chosen = std::int32_t(1 + 5 * i % length), rejected = std::int32_t(1 + 3 * i % length);
    const bool used = i % 4 != 3;
    const std::int32_t begin = at + std::int32_t(length);
    out.insert(out.end(), {used ? at : 0, used ? at + chosen : 0, used ? begin : 0, used ? begin + rejected : 0});
  }
  return out;
}

// Sums of losses in double, in another order; weights are floats of values in double.
Case preference(std::int64_t pairs, std::int64_t length, double smoothing) {
  return {format("preference of {} pairs, {} tokens each, smoothing {}", pairs, length, smoothing), [=](Side& side) {
            const std::int64_t tokens = 2 * pairs * length;
            std::vector<double> references(std::size_t(2 * pairs), -double(length) / 2);
            if (pairs > 1) references[2] = std::numeric_limits<double>::quiet_NaN();
            const Tensor weights = side.poisoned({tokens}, DType::f32), known = side.poisoned({pairs, 2}, DType::f64);
            const Tensor sum = side.raw(std::vector<double>{0.5}, {1}), counted = side.raw(std::vector<std::int64_t>{3}, {1});
            const Tensor sums = side.raw(std::vector<double>(std::size_t(ops::preference_sums), 1.0), {ops::preference_sums});
            ops::preference(side.stream(), {.losses = side.gaussian({tokens}, 1, DType::f32, 0.5),
                                            .places = side.raw(places_of(pairs, length), {pairs, 4}),
                                            .references = side.raw(references, {pairs, 2}),
                                            .form = {0.1, smoothing},
                                            .weights = weights,
                                            .loss_sum = sum,
                                            .counted = counted,
                                            .sums = sums,
                                            .log_probabilities = known});
            const double bound = 0x1p-50 * double(length) * double(pairs + 1);
            side.result("weights", weights, within(0x1p-24)), side.result("log-probabilities", known, within(bound));
            side.result("sum", sum, within(bound)), side.result("sums", sums, within(bound));
            side.result("counted", counted, same_bits());
          }};
}

// As in tokens.parity.cpp, times the weights.
Case weighted_cross_entropy(DType dtype, std::int64_t T, std::int64_t V, std::int64_t columns) {
  return {format("cross_entropy {} T {} V {} of {} with weights", dtype, T, V, columns), [=](Side& side) {
            std::vector<std::int32_t> targets;
            std::vector<float> weights;
            for (std::int64_t t = 0; t < T; ++t)
              targets.push_back(t % 5 == 3 ? -1 : std::int32_t(7 * t % V)), weights.push_back(float(t % 3 - 1) * 0.5f);
            const Tensor logits = side.gaussian({T, columns}, 1, dtype, 4), losses = side.poisoned({T}, DType::f32);
            ops::cross_entropy(side.stream(), {.logits = logits,
                                               .targets = side.raw(targets, {T}),
                                               .vocabulary = V,
                                               .losses = losses,
                                               .loss_sum = side.raw(std::vector<double>{0}, {1}),
                                               .counted = side.raw(std::vector<std::int64_t>{0}, {1}),
                                               .weights = side.from(weights, {T})});
            side.result("logits", logits, within(double(V + 16) * 0x1p-24));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const double smoothing : {0.0, 0.1})
    for (const auto& [pairs, length] : {std::pair(1, 1), {9, 7}, {33, 200}, {257, 16}})
      cases.push_back(preference(pairs, length, smoothing));
  for (const DType dtype : {DType::f32, DType::bf16})
    cases.push_back(weighted_cross_entropy(dtype, 37, 61, 64)), cases.push_back(weighted_cross_entropy(dtype, 20, 50257, 50272));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
