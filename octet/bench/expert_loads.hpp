#pragma once

#include "octet/train/run/config/run_config.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::bench {

/// Uneven loads of experts, as a router that prefers some experts has them: expert e of E has the bias e / (E - 1) times a spread when
/// experts are chosen, beside scores near 1 / E. Of a spread of 0, or a model without experts, they do nothing.
class UnevenLoads {
 public:
  explicit UnevenLoads(double spread = 0) : spread_(spread) {}

  /// Routers of `config` have biases, which no step moves by more than 1e-30.
  void configure(train::RunConfig& config) const;
  /// Before the first step of an engine that was configured so.
  void apply(train::Engine&) const;
  /// While a step is read out: the largest load of a layer's experts as a multiple of their mean, on average over layers; 0 without
  /// experts.
  static double fullest(train::Engine&);

 private:
  double spread_;
};

}  // namespace octet::bench
