#pragma once

#include <functional>
#include <memory>

#include "octet/config/fields.hpp"
#include "octet/ops/preference/preference.hpp"

namespace octet::nn {

/// Where a loss is collected, on the device. Of tokens, or of pairs where the objective is one of preferences.
struct LossSums {
  Tensor sum;                     // f64 [1], added to
  Tensor counted;                 // i64 [1], tokens or pairs that count, added to
  Tensor preferences = {};        // f64 [ops::preference_sums], added to; empty where there are no pairs
  Tensor log_probabilities = {};  // f64 [P, 2], of the answers of this batch; empty where they are not asked for
  // The same two of tokens further ahead, of all depths together; empty where none are predicted.
  Tensor ahead_sum = {}, ahead_counted = {};

  LossSums of_tokens_ahead() const { return {ahead_sum, ahead_counted}; }
};

/// The targets of a batch on the device.
struct Targets {
  Tensor tokens;           // i32 [T], -1 where none counts
  Tensor pairs = {};       // i32 [P, 4], ops::Preference::places; empty where there are no pairs
  Tensor references = {};  // f64 [P, 2], ops::Preference::references
};

/// A loss from the cross-entropies of tokens.
class Objective {
 public:
  virtual ~Objective() = default;

  /// A pass of the head over all tokens.
  struct HeadPass {
    LossSums sums;         // of tokens
    Tensor losses = {};    // f32 [T] to fill, or empty
    bool gradient = true;  // also that of the sum of losses, where it is wanted at all
    bool again = false;    // another pass computed the same logits before
    Tensor weights = {};   // f32 [T], factors of tokens' gradients; empty: 1
  };
  using RunHead = std::function<void(const HeadPass&)>;
  /// Adds the loss to `sums`, and by passes of the head the gradient, which is wanted in training.
  virtual void run(Stream&, const Targets&, const LossSums& sums, bool training, const RunHead&) const = 0;
  /// Whether targets have pairs.
  virtual bool of_pairs() const { return false; }
};
/// The sum of tokens' losses.
const Objective& sum_of_tokens();

/// The [dpo] section of a run's configuration.
struct PreferenceConfig {
  double beta = 0;  // 0: text is learned, not preferences
  double label_smoothing = 0;

  explicit operator bool() const { return beta > 0; }
  void fields(config::FieldVisitor& v) {
    v.field("beta", beta, "learns from pairs of a chosen and a rejected answer, with this factor of log-probabilities, such as 0.1; 0: off",
            {.at_least = 0, .at_most = 1e6});
    v.field("label_smoothing", label_smoothing, "assumed share of pairs whose answers are the wrong way round",
            {.at_least = 0, .below = 0.5});
    v.idle("label_smoothing", beta == 0, "dpo.beta is 0");
  }
};
/// Direct preference optimization: ops::Preference. The gradient by the logits is that of tokens' losses times a weight for each token,
/// which follows from the losses of whole answers, so the head passes over all tokens twice. Without a beta it is the sum of tokens.
std::unique_ptr<const Objective> make_objective(const PreferenceConfig&);

}  // namespace octet::nn
