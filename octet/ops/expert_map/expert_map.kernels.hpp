#pragma once

#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {

/// Choices whose places a block of a GPU finds at once.
inline constexpr std::int64_t expert_map_strip = 512;

}  // namespace octet::ops

/// strips: scratch of a GPU, i32 [ceil(T K / expert_map_strip), E]; empty on a CPU.
OCTET_KERNEL(expert_map, const Tensor& chosen, const ops::ExpertMap&, const Tensor& strips)
