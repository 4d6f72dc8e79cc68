#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// y = x / 2 * (1 + tanh(u)),   u = sqrt(2 / pi) * (x + 0.044715 x^3): the tanh form of GELU.
/// x: [T, F] f32, bf16 or f16; y: a sink of that shape and dtype. Throws ContractError on others.
/// Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units", section 2.
void gelu_forward(Stream&, const Tensor& x, Sink& y);

/// dx = dy * dgelu(x)/dx. dy, x: [T, F] of one dtype, f32, bf16 or f16; dx: a sink of that shape and dtype, overwritten.
/// Throws ContractError on others.
void gelu_backward(Stream&, const Tensor& dy, const Tensor& x, Sink& dx);

}  // namespace octet::ops
