#pragma once

#include "octet/train/run/config/run_config.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::bench {

/// The loads of experts in measured steps: those that first weights give, equal ones, or uneven ones, as a router that prefers some experts
/// has them. Then expert e of E has the bias e / (E - 1) times a spread when experts are chosen, beside scores near 1 / E. In a model
/// without experts all do nothing.
class ExpertLoads {
 public:
  ExpertLoads() = default;
  /// Equal ones for a spread of 0: tokens choose experts in turn.
  static ExpertLoads of_spread(double spread) { return {spread == 0, spread}; }

  /// Routers of `config` have biases, which no step moves by more than 1e-30.
  void configure(train::RunConfig& config) const;
  void configure(train::EngineConfig& config) const { config.shape.experts.in_turn |= in_turn_; }
  /// Before the first step of an engine that was configured so.
  void apply(train::Engine&) const;
  /// While a step is read out: the largest load of a layer's experts as a multiple of their mean, on average over layers; 0 without
  /// experts.
  static double fullest(train::Engine&);

 private:
  ExpertLoads(bool in_turn, double spread) : in_turn_(in_turn), spread_(spread) {}

  bool in_turn_ = false;
  double spread_ = 0;
};

}  // namespace octet::bench
