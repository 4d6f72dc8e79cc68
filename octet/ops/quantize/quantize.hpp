#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// Quantizes x [rows, cols] (f32 or bf16) into the sink's codes, rows and transposed columns from one read of x; a sink that only stores
/// values takes f16, too:
///
///   codes[r,c] = encode(x[r,c] * scale(block of r,c)),   x[r,c] ~= value(codes[r,c]) * descale(block of r,c)
///
/// by sink.spec. If the scale is not known, it comes from max |x| of the tensor, row or block by spec.rule, with the policy
/// of numerics/scale.hpp for maxima of 0, infinity and NaN. Columns of blocked layouts are quantized from x, not from the row codes.
/// Sets the descales, raises spec.amax, adds to *spec.health. An unquantized sink: x, rounded to sink.dtype, goes to sink.plain. x may be
/// sink.plain itself. Throws ContractError on other shapes or dtypes. Sources: Transformer Engine's recipes; OCP MX 1.0.
void quantize(Stream&, const Tensor& x, Sink& sink);

/// The same of values as a variable of training is stored: f32, bf16, or with one scale per tensor, f16 or e4m3_tensor, which have a sink
/// of f32. FP16 codes are multiplied by their descale as they are loaded; e4m3_tensor is first decoded, in scratch.
void quantize(Stream&, const Stored& x, Sink& sink);

/// x [rows, cols] (f32 or bf16) = value * descale, rounded to its dtype: the values that a GEMM multiplies. Throws ContractError on other
/// shapes or dtypes and on transposed views.
void dequantize(Stream&, const Quantized& q, const Tensor& x);

}  // namespace octet::ops
