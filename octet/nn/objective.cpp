#include "octet/nn/objective.hpp"

namespace octet::nn {
namespace {

class SumOfTokens final : public Objective {
 public:
  void run(Stream&, const Targets&, const LossSums& sums, bool, const RunHead& head) const override { head({.sums = sums}); }
};

class PreferenceLoss final : public Objective {
 public:
  explicit PreferenceLoss(const PreferenceConfig& c) : form_{c.beta, c.label_smoothing} {}
  bool of_pairs() const override { return true; }

  void run(Stream& stream, const Targets& targets, const LossSums& sums, bool training, const RunHead& head) const override {
    const Scope scope(stream);
    const Shape tokens = targets.tokens.shape;
    const Tensor losses = stream.empty(tokens, DType::f32), weights = stream.empty(tokens, DType::f32);
    const LossSums of_tokens{stream.zeros({1}, DType::f64), stream.zeros({1}, DType::i64)};  // not used
    head({.sums = of_tokens, .losses = losses, .gradient = false});
    ops::preference(stream, {.losses = losses,
                             .places = targets.pairs,
                             .references = targets.references,
                             .form = form_,
                             .weights = weights,
                             .loss_sum = sums.sum,
                             .counted = sums.counted,
                             .sums = sums.preferences,
                             .log_probabilities = sums.log_probabilities});
    if (training) head({.sums = of_tokens, .again = true, .weights = weights});
  }

 private:
  ops::PreferenceForm form_;
};

}  // namespace

const Objective& sum_of_tokens() {
  static const SumOfTokens only;
  return only;
}

std::unique_ptr<const Objective> make_objective(const PreferenceConfig& c) {
  if (!c) return std::make_unique<SumOfTokens>();
  return std::make_unique<PreferenceLoss>(c);
}

}  // namespace octet::nn
