#pragma once

#include "octet/ops/quantize/sink.hpp"

// Stacks of E matrices [N, K], one after the other: x [E N, K]. Where a spec has one scale per tensor that comes from the data, each matrix
// has its own, as if it were a tensor by itself: the same bits as E calls of quantize().

namespace octet::ops {

/// Whether the matrices of a stack have a scale each by this spec: one per tensor, from the data, with f32 descales. Others' scales belong
/// to rows and blocks, or are known before.
bool scales_per_matrix(const QuantizeSpec&);

/// make_sink() for a stack of E matrices: rows [E N, K] in blocks of N whole rows, columns [K, E N] in blocks of N whole columns. Descales:
/// f32 [E], shared by both. On a CPU, operands that are decoded for GEMMs keep them as factors. Throws ContractError unless the rows are E
/// times N and the spec scales matrices; on a GPU also where N or K is not a multiple of 16.
Sink make_stack_sink(Stream&, const QuantizeSpec&, const SinkRequest&, std::int64_t matrices);

/// Fills it from the stack as a variable is stored: f32, bf16, or with one scale per tensor, f16 or e4m3_tensor. Raises spec.amax, adds to
/// *spec.health. A fixed number of launches for every E. Throws ContractError on other shapes or dtypes, and where the spec has neither
/// rows nor columns.
void quantize_stack(Stream&, const Stored& x, Sink&);

}  // namespace octet::ops
