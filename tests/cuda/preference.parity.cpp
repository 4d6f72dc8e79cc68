#include <cmath>
#include <limits>

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/machine/machine.hpp"
#include "octet/ops/preference/preference.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
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

// Two rows with two pairs each: answers of 4 tokens behind questions of 4. Half of them have known references.
data::Batch pairs_of(std::uint64_t seed) {
  constexpr std::int64_t length = 32, answer = 8;
  data::Batch batch = train::testing::random_batch(2, length, 61, seed);
  batch.document_mask = true, batch.pairs.per_row = 3;
  batch.resize();
  for (std::int64_t t = 0; t < 2 * length; ++t) {
    const auto i = std::size_t(t);
    batch.document_starts[i] = std::int32_t(t % length / answer * answer);
    if (t % answer < answer / 2) batch.targets[i] = -1;
  }
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      const auto entry = std::size_t(3 * row + pair);
      const auto begin = std::int32_t(row * length + 2 * pair * answer), middle = begin + std::int32_t(answer);
      const std::int32_t places[] = {begin, middle, middle, middle + std::int32_t(answer)};
      std::copy(std::begin(places), std::end(places), batch.pairs.places.begin() + std::ptrdiff_t(4 * entry));
      batch.pairs.numbers[entry] = std::int64_t(entry);
      if (pair == 0) batch.pairs.references[2 * entry] = -16, batch.pairs.references[2 * entry + 1] = -17;
    }
  return batch;
}

// Steps of a model, whose micro-batches a GPU replays. Bounds of gradients as in engine.parity.cpp; a log-probability is the sum of 4
// tokens, and beta times its error is that of the loss.
Case steps(const std::string& recipe) {
  return {format("engine of preference {}", recipe), [=](Side& side) {
            const Device device = side.stream().device();
            train::EngineConfig config = train::testing::small_engine("llama", recipe);
            config.shape.hidden = 128, config.shape.vocabulary = 64;
            config.document_mask = true, config.preference = {.beta = 0.1};
            train::Engine e(config, device, machine::machine_target(device));
            e.parameters.initialize(e.stream, 7);
            train::StepRunner runner(e);
            const double unit = recipe == "fp32" ? 0x1p-24 * 256 : recipe == "bf16" ? 0x1p-8 : 0x1p-4, layers = 12;
            std::vector<float> losses, norms, log_probabilities;
            for (std::uint64_t s = 0; s < 4; ++s)
              runner.run(std::vector{pairs_of(2 * s), pairs_of(2 * s + 1)}, {.learning_rate = 1e-3}, [&] {
                const train::Readout shown = train::read_out(e);
                losses.push_back(shown.loss), log_probabilities.push_back(float(shown.preferences.chosen_log_probability));
                if (s == 0) norms.push_back(float(shown.step.gradient_norm));
              });
            const auto result = [&](const char* name, const std::vector<float>& x, Nearness how) {
              side.result(name, side.from(x, {std::int64_t(x.size())}), std::move(how));
            };
            result("losses", losses, within(0.1 * 8 * 4.2 * unit * std::sqrt(layers)));
            result("gradient norm", norms, within_share_of_largest(unit * layers));
            result("log-probabilities", log_probabilities, within(4 * 4.2 * unit * std::sqrt(layers)));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const double smoothing : {0.0, 0.1})
    for (const auto& [pairs, length] : {std::pair(1, 1), {9, 7}, {33, 200}, {257, 16}})
      cases.push_back(preference(pairs, length, smoothing));
  for (const DType dtype : {DType::f32, DType::bf16})
    cases.push_back(weighted_cross_entropy(dtype, 37, 61, 64)), cases.push_back(weighted_cross_entropy(dtype, 20, 50257, 50272));
  for (const char* recipe : {"fp32", "bf16", "current", "block128"}) cases.push_back(steps(recipe));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
