#pragma once

#include "octet/parallel/shared_scale_sum.hpp"

namespace octet::parallel {

/// How gradients travel.
enum class Wire : std::uint8_t {
  stored,  // as they are stored; e4m3_tensor as e4m3_shared
  f32,
  bf16,
  e4m3,         // see eight_bit_sum.hpp
  e4m3_shared,  // see shared_scale_sum.hpp
  e4m3_prescaled,
  e4m3_postscaled,
};
std::string_view name(Wire);
inline std::string to_text(Wire w) { return std::string(name(w)); }

/// How activations travel: partial sums between the ranks that divide a layer, or borders between stages of a pipeline.
enum class TensorWire : std::uint8_t {
  activations,  // in the type of activations: BF16, or FP32 under a recipe of FP32
  e4m3,         // codes with a power-of-two scale per 128 values: see eight_bit_sum.hpp and transfers.hpp
};

/// How rows travel to the experts that tokens chose; sums come back in the type of activations.
enum class ExpertWire : std::uint8_t {
  recipe,       // as codes, where the layer reads codes with a scale per 128 values of a row; otherwise as activations
  activations,  // in the type of activations
  e4m3,         // codes with a power-of-two scale per 128 values
};

/// The wire format of gradients in this storage.
Wire wire_of(Wire wanted, Storage gradients);

/// One scale per tensor, shared by all ranks: a sum by SharedScaleSum.
bool has_shared_scale(Wire);
/// Its room, of such a format. growth: at_zero or below_threshold, of e4m3_shared.
SumRoom room_of(Wire, ops::MuGrowth growth = ops::MuGrowth::at_zero);

}  // namespace octet::parallel
