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

/// The wire format of gradients in this storage.
Wire wire_of(Wire wanted, Storage gradients);

/// One scale per tensor, shared by all ranks: a sum by SharedScaleSum.
bool has_shared_scale(Wire);
/// Its room, of such a format. growth: at_zero or below_threshold, of e4m3_shared.
SumRoom room_of(Wire, ops::MuGrowth growth = ops::MuGrowth::at_zero);

}  // namespace octet::parallel
