#pragma once

#include <memory>
#include <vector>

#include "octet/nn/routers.hpp"
#include "octet/tensor/parameter.hpp"

namespace octet::nn {

/// Lets the host read and write the biases of a model's routers as parameters of f32 without gradients, "layers.3.mlp.router.bias" [E]:
/// files are read and written this way. Without biases that files have there are none. Of the null device they have no memory.
class RouterBiases {
 public:
  /// layers: numbers of the blocks with experts. Both outlive this.
  RouterBiases(Stream&, const Routers&, const std::vector<std::int64_t>& layers);

  /// `parameters` and these.
  std::vector<Parameter*> behind(std::vector<Parameter*> parameters) const;
  /// The path of the first one that is not finite; "" if all are.
  std::string nonfinite() const;
  /// Writes them to the device.
  void commit();

 private:
  Stream& stream_;
  const Routers& routers_;
  std::vector<float> values_;  // [layers, E]
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

}  // namespace octet::nn
