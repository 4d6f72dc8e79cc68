#pragma once

#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// y[r] = x[t] for the token t = source[r] / K of row r, and 0 for rows without one, so that no maximum and no scale depends on padding.
/// x: [T, C] f32, bf16 or f16; y: a sink of [R, C] and x's dtype, whose orientations are encoded as rows are gathered. Throws
/// ContractError on other shapes or dtypes. The gradient is combine_rows().
void gather_rows(Stream&, const Tensor& x, const ExpertMap&, Sink& y);

}  // namespace octet::ops
