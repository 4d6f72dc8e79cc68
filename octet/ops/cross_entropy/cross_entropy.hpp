#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Cross-entropy of a chunk of tokens, and its gradient in place of the logits:
///   losses[t] = log(sum_v exp(logits[t, v])) - logits[t, targets[t]]                        v < vocabulary
///   logits[t, v] <- (softmax(logits[t])[v] - (v == targets[t])) * gradient_scale            when `gradient`
///   loss_sum += sum_t losses[t],  counted += number of tokens that count
/// A target of -1 does not count: its loss and gradient are 0. Columns from `vocabulary` on are padding: never read as logits, their
/// gradient is 0. logits: [T, V] f32, bf16 or f16; targets: i32 [T]; losses: f32 [T]; loss_sum: f64 [1], added to in order of t, the same
/// for any number of threads; counted: i64 [1], added to. Maxima are taken out first, sums are FP32. A target that is no token of
/// the vocabulary has loss NaN. `gradient_scale` is constant in a run: 1 / (tokens in a step). `loss_scale`: f32 [1] or empty, a further
/// factor of the gradient, read on the device. `weights`: f32 [T] or empty, a further factor of each token's gradient; those of tokens
/// that do not count are not read. On a GPU all sums are in another order, always the same, and exponentials in another way: last bits
/// differ from the CPU's.
/// So that logits never exist whole, the caller works through its tokens in chunks.
///
/// Of logits whose columns have several owners, `vocabulary` counts the own ones, and `parts` has the statistics of all owners, in any
/// order: losses, which every owner finds alike, are of all columns, and each owner gets the gradient of its own.
struct CrossEntropy {
  Tensor logits, targets;
  std::int64_t vocabulary;
  Tensor losses, loss_sum, counted;
  float gradient_scale = 1;
  Tensor loss_scale = {}, weights = {};
  bool gradient = true;    // false: forward only, the logits stay
  std::int64_t first = 0;  // the token of column 0
  Tensor parts = {};       // f32 [owners T, 3], owner after owner; empty: all columns are here
};
/// Throws ContractError on other shapes or dtypes.
void cross_entropy(Stream&, const CrossEntropy&);

/// The statistics of one owner's columns, f32 [T, 3]:
///   most = max_v logits[t, v],   sum_v exp(logits[t, v] - most),   logits[t, targets[t] - first], NaN where that column is another owner's
/// v < vocabulary. Undefined where the target is -1.
struct LogitStatistics {
  Tensor logits, targets;
  std::int64_t vocabulary, first;
  Tensor statistics;
};
/// Throws ContractError on other shapes or dtypes.
void logit_statistics(Stream&, const LogitStatistics&);

/// mean = sum / counted, NaN where nothing counts: f64 [1] / i64 [1] to f32 [1]. Throws ContractError on other dtypes.
void mean_loss(Stream&, const Tensor& sum, const Tensor& counted, const Tensor& mean);

}  // namespace octet::ops
