#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The form of a loss of preferences.
struct PreferenceForm {
  double beta = 0.1;           // how much a difference of log-probabilities counts
  double label_smoothing = 0;  // e: the assumed share of pairs whose answers are the wrong way round
};

/// Direct preference optimization of P pairs of answers to one question, from the losses of their tokens (-log p):
///
///   log p(a) = -sum of losses[t], t in [begin, end) of answer a
///   r(a) = beta (log p(a) - reference of a)                                  its reward
///   z = r(chosen) - r(rejected)
///   loss = -(1 - e) log s(z) - e log s(-z)                                   s(x) = 1 / (1 + exp(-x))
///   weights[t] = d loss / d losses[t], for the tokens of both answers
///
/// A reference that is NaN is not known yet: the answer's own log-probability counts as it.
///
/// losses, weights: f32 [T]; weights of tokens outside answers stay. places: i32 [P, 4], begin and end of the chosen and of the rejected
/// answer, all 0 where there is no pair. references: f64 [P, 2]. Added to: loss_sum, f64 [1]; counted, i64 [1], the number of pairs;
/// sums, f64 [preference_sums]. Overwritten: log_probabilities, f64 [P, 2], of both answers, or empty. Sums are in double; on a GPU in
/// another order, always the same. Sources: Rafailov et al. 2023, "Direct Preference Optimization", equation 7; smoothing: Mitchell 2023,
/// "A note on DPO with noisy preferences".
struct Preference {
  Tensor losses, places, references;
  PreferenceForm form;
  Tensor weights, loss_sum, counted, sums, log_probabilities = {};
};
/// Throws ContractError on other shapes or dtypes.
void preference(Stream&, const Preference&);

/// Entries of Preference::sums, of all pairs.
enum PreferenceSum : int {
  chosen_rewards,
  rejected_rewards,
  chosen_preferred,  // pairs whose chosen answer has the larger reward
  chosen_log_probabilities,
  rejected_log_probabilities,
  preference_sums
};

}  // namespace octet::ops
