#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// Fills a sink for GEMM operands of a matrix whose row codes exist: SinkRequest::codes of make_sink(). An operand that is these codes
/// themselves is left alone; the others get the bits that quantize() of the matrix gives them. Neither amax nor health change.
/// Workspace from scratch, on a CPU: the transposed codes, where decoded columns are K-contiguous.
/// Throws ContractError unless both orientations have equal codes (QuantizeSpec::same_codes).
void fill_from_codes(Stream&, const Quantized& codes, Sink&);

/// to [C, R] = the transpose of from [R, C], K-contiguous 8-bit codes both, with the descales of their blocks: f32, per tensor, matrix
/// of a stack, or 128x128. Those of tensors and matrices are shared or copied. R and C are multiples of 16. Throws ContractError on other
/// shapes, dtypes or blocks.
void transpose_codes(Stream&, const Quantized& from, const Quantized& to);

}  // namespace octet::ops
