#pragma once

#include "octet/ops/quantize/saved.hpp"

namespace octet::ops {

/// y = x / 2 * (1 + tanh(u)),   u = sqrt(2 / pi) * (x + 0.044715 x^3): the tanh form of GELU.
/// x: [T, F] f32, bf16 or f16; y: a sink of that shape and dtype. Throws ContractError on others.
/// With `codes`, a saved_sink() of x, which then is plain: x is also encoded, in the same pass unless health is measured.
/// Saved codes as x: F must be a multiple of saved_block. Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units", section 2.
void gelu_forward(Stream&, const Saved& x, Sink& y, Sink* codes = nullptr);

/// dx = dy * dgelu(x)/dx. dy, x: [T, F] of one dtype, f32, bf16 or f16; dx: a sink of that shape and dtype, overwritten.
/// Throws ContractError on others. x may be saved codes, as in forward: they are decoded as they are read.
void gelu_backward(Stream&, const Tensor& dy, const Saved& x, Sink& dx);

}  // namespace octet::ops
