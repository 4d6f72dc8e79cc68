#pragma once

#include "octet/ops/quantize/sink.hpp"

// Stacks of E matrices [N, K], one after the other: x [E N, K]. By a spec with blocks of matrices (QuantizeSpec::scale_each()), each has
// its own scale, as if it were a tensor by itself: the same bits as E calls of quantize(). Sinks have rows [E N, K] in blocks of N whole
// rows and columns [K, E N] in blocks of N whole columns. Descales are f32 [E], shared by both; a CPU's decoded operands keep them as
// factors.
//
// Such a sink is filled by quantize() alone, which reads the stack twice where scales come from the data. It stores no values.

namespace octet::ops {

/// Whether the spec has blocks of matrices, so that quantize_stack() fills its sinks.
bool is_stack(const QuantizeSpec&);

/// Throws ContractError unless the shape is that of a stack, known scales and maxima are one per matrix, and, on a GPU, sides of the
/// matrices are multiples of 16.
void check_stack(const Stream&, const QuantizeSpec&, const Shape&);

/// quantize() of a stack as a variable is stored: f32, bf16, or with one scale per tensor, f16 or e4m3_tensor. Raises the maximum of each
/// matrix, adds all to *spec.health. A fixed number of launches for every E. Throws ContractError on other shapes or dtypes.
void quantize_stack(Stream&, const Stored& x, const Sink&);

}  // namespace octet::ops
