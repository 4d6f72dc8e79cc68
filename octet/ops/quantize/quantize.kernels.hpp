#pragma once

#include "octet/ops/quantize/batch.hpp"
#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/tensor/backend.hpp"

/// x has Sink::dtype, or is f32 and rounded to it, or is f16 for a sink of f32: then its codes are multiplied by `descale`, f32 [1].
OCTET_KERNEL(quantize, const Tensor& x, const ops::Sink&, const Tensor& descale)
/// out[r, c] = value(q.codes[r, c]) * descale, rounded to out's dtype, or without the descales. All are in their stored order; q may be
/// f32, bf16 or f16; codes are not decoded to f16.
OCTET_KERNEL(decode_operand, const Quantized& q, bool descaled, const Tensor& out)

namespace octet::ops {
/// Counts the work of quantize().
void count_quantized(Stream&, const Tensor& x, const Sink&);
}  // namespace octet::ops

namespace octet::cuda {
/// Of f32 values for sinks of f32.
void quantize_batch(Queue, const std::vector<ops::QuantizeBatch::Item>&);
/// *total = sum of `nonfinite` over n rows of the table.
void count_nonfinite(Queue, const ops::QuantizeHealth* table, std::int64_t n, std::int64_t* total);
}  // namespace octet::cuda
