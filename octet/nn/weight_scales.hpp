#pragma once

#include <vector>

#include "octet/nn/partition.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/ops/quantize/spec.hpp"

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
    bind(stream, collect.layers);
  }
  WeightScales(const WeightScales&) = delete;
  WeightScales& operator=(const WeightScales&) = delete;

  /// Finds all scales again if a weight changed since. All members call it, as a layer does before it quantizes its weight.
  void find(Stream&);

 private:
  struct Collect final : Visitor {
    std::vector<Linear*> layers;
    void linear(Linear& l) override { layers.push_back(&l); }
  };
  struct Weight {
    const Parameter* parameter;
    ops::QuantizeSpec spec;  // without the scale
    Tensor scale, descale;   // f32 [1]; scale: of scales_
    std::uint64_t version = 0;
  };
  void bind(Stream&, const std::vector<Linear*>&);

  Partition& partition_;
  std::vector<Weight> weights_;
  Tensor scales_;  // f32: maxima, then scales
};

}  // namespace octet::nn
