#pragma once

#include <cstdint>
#include <span>

namespace octet::train {

/// How the next token is chosen from its logits.
struct Sampling {
  double temperature = 0.8;  // logits are divided by it; 0: the most likely token
  std::int64_t top_k = 40;   // candidates: this many most likely tokens; 0: all
  double top_p = 1;          // of these, the fewest most likely ones whose probabilities sum to at least top_p
  std::uint64_t seed = 1;
  double repetition_penalty = 1;  // penalize(); above 0

  /// Whether sample() of penalized logits is the first of the largest ones.
  bool takes_most_likely() const { return temperature == 0 && repetition_penalty == 1; }
};

/// Whether none is NaN or infinite.
bool are_finite(std::span<const float> logits);

/// The logit x of every id in `text` becomes x / penalty if it is above 0, else x * penalty: above 1, repetitions are less likely. Source:
/// Keskar et al. 2019, "CTRL", section 4.1, as transformers applies it, to ids of the prompt, too.
void penalize(std::span<float> logits, std::span<const std::int32_t> text, double penalty);

/// The id of the next token. Candidates are limited by top_k, then by top_p under the probabilities softmax(logits / temperature) of these
/// candidates (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"), and drawn by them. The draw is a function of (seed,
/// draw), so that equal logits give equal text. Of equal logits the lower id comes first. Logits must not be empty, NaN or +infinity;
/// throws ContractError.
std::int32_t sample(std::span<const float> logits, const Sampling&, std::uint64_t draw);

}  // namespace octet::train
