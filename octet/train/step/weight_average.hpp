#pragma once

#include "octet/nn/parameters.hpp"

namespace octet::train {

/// The mean of a model's weights over steps, each with equal weight, in f32:
///   mean_n = mean_(n-1) + (w_n - mean_(n-1)) / n
/// Beside training, which it never touches. Source: Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better
/// Generalization".
class WeightAverage {
 public:
  /// Allocates an f32 value for each parameter's. The parameters must have storage and outlive this.
  WeightAverage(Stream&, nn::Parameters&);

  /// Counts the weights as they are.
  void add(Stream&);
  /// Begins again.
  void forget() { count_ = 0; }
  /// Weights counted since.
  std::int64_t count() const { return count_; }
  const std::vector<Tensor>& means() const { return means_; }
  void visit_state(StateVisitor&);

 private:
  nn::Parameters& parameters_;
  std::vector<Tensor> means_;
  std::int64_t count_ = 0;
};

/// While it lives, the parameters hold the averages, rounded to nearest in the type that they are stored in; then their own bits again.
/// Their values are copied to the host meanwhile.
class AveragedWeights {
 public:
  /// Throws ContractError when nothing was counted.
  AveragedWeights(Stream&, nn::Parameters&, const WeightAverage&);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  Stream& stream_;
  nn::Parameters& parameters_;
  std::vector<std::vector<float>> own_;
};

}  // namespace octet::train
