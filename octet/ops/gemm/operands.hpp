#pragma once

#include "octet/tensor/stream.hpp"

// Operands of gemm() and of grouped_gemm(), before a library multiplies them.

namespace octet::ops {

/// An operand as the library that multiplies gets it.
struct GemmReady {
  Tensor values;
  bool decode = false;    // values are scratch, to be filled
  bool descaled = false;  // its descales are in the values, not in a factor of the sums (of each matrix of a stack)
};

/// One descale for the whole tensor.
bool one_descale(const Quantized&);
/// One descale per matrix of a stack: for a number of whole rows, or of whole columns.
bool descale_per_matrix(const Quantized&);
/// Exact in BF16: its own values, and FP8 codes unless each block's descale has a mantissa that must be multiplied in.
bool fits_bf16(const Quantized&);
/// The type in which a CPU multiplies these.
DType cpu_compute(const Target&, const Quantized& a, const Quantized& b);
/// The operand as values of `compute`: scratch for them, if it has another type.
GemmReady prepare_operand(Stream&, const Quantized&, DType compute);
/// An operand of GemmWay::parts: scratch for an f32 operand's parts, along K or one behind the other.
GemmReady prepare_parts(Stream&, const Quantized&, bool along_k);
/// Throws ContractError, naming the op and the operand, on other dtypes and layouts than gemm() takes.
void check_gemm_operand(const char* op, const Quantized&, std::string_view which, bool cpu);

}  // namespace octet::ops
