#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "octet/numerics/scale.hpp"
#include "octet/tensor/dtype.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::models {

/// The form of the weights of a Hugging Face folder: values, or E4M3 codes with scales for the matrices of blocks and values for the rest.
struct WeightForm {
  enum class Codes : std::uint8_t { none, blocks, channels, tensor };

  WeightForm(DType dtype, Codes codes = Codes::none)
      : dtype(dtype), codes(codes), rule(codes == Codes::tensor ? ScaleRule::quotient : ScaleRule::power_of_two) {}
  /// "f32", "bf16", "fp8-block128", "fp8-channel" or "fp8-tensor"; ContractError for another name.
  static WeightForm named(std::string_view name);
  static std::vector<std::string> names();

  DType dtype;  // of values: f32 or bf16
  Codes codes;
  ScaleRule rule;                      // of scales: recipe.scale of rows and blocks, always quotients per tensor
  std::vector<std::string> kept = {};  // with codes: the parameters of blocks that are values all the same, "layers.0.mlp.down.weight"
  /// With codes per tensor: the static scale of the activations that a matrix of blocks multiplies, by its parameter; empty: servers
  /// compute scales of activations.
  std::map<std::string, float> input_scales = {};

  bool has_codes() const { return codes != Codes::none; }
  /// Whether scales may be powers of two or quotients.
  bool has_rounded_scales() const { return codes == Codes::blocks || codes == Codes::channels; }
  bool keeps(const std::string& parameter) const { return std::ranges::find(kept, parameter) != kept.end(); }
  std::string_view name() const;
  /// The values that share a scale, as recipes block128, rowwise and current have it for weights.
  ScaleBlock block() const;
  /// The end that turns the name of a weight into the name of its scales.
  std::string_view scale_suffix() const { return codes == Codes::blocks ? "_scale_inv" : "_scale"; }
};

}  // namespace octet::models
