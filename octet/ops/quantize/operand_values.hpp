#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// The values of a GEMM operand in their stored order, in scratch, with the descales multiplied in and rounded to `type`, f32 or bf16. An
/// operand without codes of 8 bits is its own values. Throws ContractError if these are of another type.
Quantized operand_values(Stream&, const Quantized&, DType type);

/// The transpose of values [R, C] as an operand [C, R]: a view. Throws ContractError for codes.
Quantized transposed(const Quantized& values);

}  // namespace octet::ops
