#pragma once

#include "octet/ops/weighted_swiglu/weighted_swiglu.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(weighted_swiglu_forward, const ops::Saved& x, const Tensor& w, const ops::ExpertMap&, float limit, const ops::Sink& y)
/// parts: scratch of a GPU, f32 [R, ceil(F / 8)]: sums of eight columns; empty on a CPU.
OCTET_KERNEL(weighted_swiglu_backward, const ops::WeightedSwigluBackward&, const ops::Sink& dx, const Tensor& parts)
/// x[r] = 0 for rows without a token.
OCTET_KERNEL(clear_rows_without_token, const Tensor& x, const ops::ExpertMap&)
