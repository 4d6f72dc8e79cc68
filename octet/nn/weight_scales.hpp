#pragma once

#include <vector>

#include "octet/nn/joined_scales.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/nn/weight.hpp"

namespace octet::nn {

/// Scales of matrices of which each member of a partition has a part, where a scale per tensor follows from the matrix: those of the
/// maximum over members, so codes are those of the whole matrix. One collective serves all of them. Of weights that modules read as values;
/// codes of divided masters have scales of their owner.
class WeightScales {
 public:
  /// Binds the scales of such layers of the model, whose parameters have their memory. All outlive this.
  template <class Model>
  WeightScales(Stream& stream, Partition& partition, Model& model) : partition_(partition) {
    Collect collect;
    model.visit(collect);
    bind(stream, collect.weights);
  }
  WeightScales(const WeightScales&) = delete;
  WeightScales& operator=(const WeightScales&) = delete;

  /// Finds all scales again if a weight changed since. All members call it, as a layer does before it quantizes its weight.
  void find(Stream&);

 private:
  struct Collect final : Visitor {
    std::vector<Weight*> weights;
    void weight(Weight& w) override { weights.push_back(&w); }
  };
  void bind(Stream&, const std::vector<Weight*>&);

  Partition& partition_;
  std::vector<const Parameter*> parameters_;
  std::vector<JoinedScales> parts_;      // of the parameters
  std::vector<std::uint64_t> versions_;  // of these when their scales were found
  Tensor scales_;                        // f32, of all
};

}  // namespace octet::nn
