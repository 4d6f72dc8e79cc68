#pragma once

#include "octet/parallel/sharded_weights.hpp"

namespace octet::train {

/// The mean of a model's weights over steps, each with equal weight, in f32:
///   mean_n = mean_(n-1) + (w_n - mean_(n-1)) / n
/// Beside training, which it never touches. Where ranks divide masters, each has the means of its own. Source: Izmailov et al. 2018,
/// "Averaging Weights Leads to Wider Optima and Better Generalization".
class WeightAverage {
 public:
  /// Allocates an f32 value for each of the masters here. The parameters must have storage and outlive this.
  WeightAverage(Stream&, nn::Parameters&);

  /// Counts the weights as they are.
  void add(Stream&);
  /// Begins again.
  void forget() { count_ = 0; }
  /// Weights counted since.
  std::int64_t count() const { return count_; }
  /// Of each of nn::Parameters::slices().
  const std::vector<Tensor>& means() const { return means_; }
  void visit_state(StateVisitor&);

 private:
  nn::Parameters& parameters_;
  std::vector<Tensor> means_;
  std::int64_t count_ = 0;
};

/// From its beginning on, modules read the averages, rounded to nearest in the type of the values that they read. Values that are masters,
/// too, are copied to the host meanwhile. All ranks begin and end it at the same time.
class AveragedWeights {
 public:
  /// Throws ContractError when nothing was counted.
  AveragedWeights(Stream&, nn::Parameters&, parallel::ShardedWeights&, const WeightAverage&);
  /// Modules read the weights' own bits again.
  void end();

 private:
  Stream& stream_;
  parallel::ShardedWeights& weights_;
  std::vector<std::pair<ParameterSlice, std::vector<float>>> own_;  // masters that modules read
};

}  // namespace octet::train
