#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// y[t, c] = silu(x[t, c]) * x[t, F + c],   silu(g) = g / (1 + e^-g): the gate is the left half of x, `up` the right.
/// x: [T, 2 F] f32, bf16 or f16; y: a sink of [T, F] and x's dtype. Throws ContractError on other shapes or dtypes.
/// Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 6.
void swiglu_forward(Stream&, const Tensor& x, Sink& y);

/// With s = 1 / (1 + e^-gate):  dx[t, c] = dy * up * s * (1 + gate * (1 - s)),   dx[t, F + c] = dy * silu(gate).
/// dy: [T, F] and x: [T, 2 F] of one dtype; dx: a sink of [T, 2 F] and that dtype, overwritten. Throws ContractError on others.
void swiglu_backward(Stream&, const Tensor& dy, const Tensor& x, Sink& dx);

}  // namespace octet::ops
