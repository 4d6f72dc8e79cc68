#pragma once

#include "octet/parallel/sharding.hpp"
#include "octet/train/step/stage_parameters.hpp"

namespace octet::train {

/// The tensors of a model whose sums of gradients travel with one shared scale each, on all stages of a pipeline. Where no ranks sum
/// gradients, or other formats travel, there are none.
class SharedScales {
 public:
  /// The parameters outlive this.
  SharedScales(const EngineConfig&, parallel::Axes&, const StageParameters&);

  /// Their paths, in the order of backward.
  const std::vector<std::string>& tensors() const { return tensors_; }
  /// The use of each in the last exchange of this rank's column of stages; on the first stage alone. All stages call it, and wait.
  std::vector<parallel::ScaleUse> uses(Stream&, const parallel::GradientSums&, const nn::Parameters&) const;

 private:
  const StageParameters& parameters_;
  std::vector<std::string> tensors_;
  std::vector<std::size_t> places_;  // among all parameters
};

}  // namespace octet::train
