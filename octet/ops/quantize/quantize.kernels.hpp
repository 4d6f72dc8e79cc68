#pragma once

#include "octet/ops/quantize/quantize.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
/// x is what Sink::dtype says, or f32 to be rounded to it.
OCTET_KERNEL(void quantize(const Tensor& x, const ops::Sink&))
/// out[r, c] = value(q.codes[r, c]) * descale, rounded to out's dtype, or without the descales. q may be f32 or bf16, in its stored order.
OCTET_KERNEL(void decode_operand(const Quantized& q, bool descaled, const Tensor& out))
}  // namespace octet::cpu
