#pragma once

#include "octet/ops/quantize/saved.hpp"

namespace octet::ops {

/// The function of a gate: g / (1 + e^-g), or GELU by its tanh approximation (gelu.hpp).
enum class Gate : std::uint8_t { silu, gelu };

/// y[t, c] = gate(x[t, c]) * x[t, F + c]: the gate is the left half of x, `up` the right.
/// x: [T, 2 F] f32, bf16 or f16; y: a sink of [T, F] and x's dtype. Throws ContractError on other shapes or dtypes.
/// With `codes`, a saved_sink() of x, which then is plain: x is also encoded, in the same pass unless health is measured.
/// Saved codes as x: F must be a multiple of saved_block. Source: Shazeer 2020, "GLU Variants Improve Transformer", eq. 6.
void swiglu_forward(Stream&, const Saved& x, Sink& y, Sink* codes = nullptr, Gate = Gate::silu);

/// With s = 1 / (1 + e^-u), u = gate for silu and 2 sqrt(2 / pi) (gate + 0.044715 gate^3) for gelu, and u' its derivative:
///   dx[t, c] = dy * up * s * (1 + gate * u' * (1 - s)),   dx[t, F + c] = dy * gate * s
/// dy: [T, F] and x: [T, 2 F] of one dtype; dx: a sink of [T, 2 F] and that dtype, overwritten. Throws ContractError on others.
/// x may be saved codes, as in forward: they are decoded as they are read.
void swiglu_backward(Stream&, const Tensor& dy, const Saved& x, Sink& dx, Gate = Gate::silu);

}  // namespace octet::ops
