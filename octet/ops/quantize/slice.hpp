#pragma once

#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

// Codes of a matrix x [R, C] of which several owners have a slice each: consecutive values in row-major order. Three steps, with the codes
// and descales that quantize() makes of the whole matrix, bit by bit:
//
//   m[b] = max |x| of the own values in block b         slice_maxima(); the caller joins the slices' maxima by max
//   s[b], 1 / s[b]                                      scales_of_maxima(), unless the scale is known
//   codes[i] = encode(x[i] * s[block of i])             quantize_slice()
//
// For specs that encode slices (QuantizeSpec::encodes_slices): one scale per tensor, per matrix of a stack, or per block of 128x128, with
// f32 descales. R and C are multiples of 16, and so are the rows of a stack's matrices. Slices are values of f32, bf16, f16 or e4m3_tensor;
// they begin at multiples of 128 of the matrix (StoredSlice), and may be empty. Source: Rajbhandari et al. 2020, "ZeRO", section 5, for the
// division.

namespace octet::ops {

/// Whether quantize_slice() takes a matrix of this shape by this spec.
bool can_quantize_slices(const QuantizeSpec&, const Shape&);

/// maxima: f32 in the layout of the descales (descale_shape()), overwritten; NaN is ignored; 0 for blocks without a value, and for padding.
/// Throws ContractError on other shapes or dtypes.
void slice_maxima(Stream&, const StoredSlice& x, ScaleBlock block, const Tensor& maxima);

/// scales[i], descales[i] = those that quantize() computes by this spec from a block's maximum, f32, of equal shapes; `scales` may be
/// `maxima`. `values`: the type of the matrix as quantize() reads it, f32 or bf16. A maximum of 0, as in padding, gives 1.
/// Throws ContractError unless the spec computes f32 scales.
void scales_of_maxima(Stream&, const QuantizeSpec&, DType values, const Tensor& maxima, const Tensor& scales, const Tensor& descales);

/// codes: [n] of the format. `scales`: of scales_of_maxima(), or empty where the spec knows its scale. Raises spec.amax to max |x| of the
/// slice, or of its values in each matrix of a stack, and adds its values to *spec.health. Workspace: the values as f32, from scratch, for
/// e4m3_tensor only. Throws ContractError on other shapes or dtypes.
void quantize_slice(Stream&, const StoredSlice& x, const QuantizeSpec&, const Tensor& scales, const Tensor& codes);

}  // namespace octet::ops
