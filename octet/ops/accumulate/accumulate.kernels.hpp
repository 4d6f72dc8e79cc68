#pragma once

#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// Values that a CPU's thread takes at once: whole blocks.
inline constexpr std::int64_t accumulate_piece = 4096;
}  // namespace octet::ops

/// By blocks of 128.
OCTET_KERNEL(accumulate_blocks, const ops::Accumulate&)
/// By one scale; maxima: f32 [1 + pieces].
OCTET_KERNEL(accumulate_tensor, const ops::Accumulate&, const Tensor& maxima)
