#pragma once

#include "octet/ops/gated_gemm/gated_gemm.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"

namespace octet::ops {

/// Outputs that neighbouring blocks of threads make together: as many as the widest block of columns with one scale.
inline constexpr std::int64_t gated_columns = 128;

}  // namespace octet::ops

namespace octet::cuda {
/// The one launch.
void gated_row(Queue, const ops::GatedGemm&, const ops::Sink& y);
}  // namespace octet::cuda
