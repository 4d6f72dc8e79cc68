#pragma once

#include "octet/numerics/scale.hpp"
#include "octet/ops/quantize/block_health.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::ops {

/// Health of one quantizer. Device memory, one row per quantizer in a table; kernels add to it, the owner clears it.
struct QuantizeHealth {
  float scale_min = 0, scale_max = 0;  // over the blocks since the last clear; 0, 0 when none
  std::int64_t values = 0;             // quantized (row orientation)
  std::int64_t saturated = 0;          // x * scale rounds beyond the format's largest value: its error is more than rounding's
  std::int64_t flushed = 0;            // not 0 before, 0 after
  std::int64_t nonfinite = 0;          // infinity or NaN in the input
  double signal = 0, noise = 0;        // sum of x^2, and of (x - dequantized)^2; only when QuantizeSpec::measure_noise
  BlockHealth blocks;                  // of the row orientation, with squares alone; empty where all values have one scale
};

/// The quantization of a tensor: everything of a recipe that an op needs. The scale is known in advance (`scale` set: per tensor), or
/// computed from the data, per tensor, row or block. `rows` and `cols` are the blocks of the tensor and of its transpose. A stack of
/// matrices may have a scale per matrix; a tensor is a stack of one.
struct QuantizeSpec {
  DType format = DType::bf16;  // e4m3 or e5m2; f32, bf16 or f16 means: not quantized, operands are the values themselves
  ScaleRule rule = ScaleRule::quotient;
  ScaleBlock rows, cols;
  Tensor scale, descale;             // f32 [matrices]: the known scales and their reciprocals; both empty: from the data
  Tensor amax;                       // f32 [matrices]: raised to max |x|, NaN ignored; may be empty
  QuantizeHealth* health = nullptr;  // added to; may be null
  bool count = true;                 // also count saturated and flushed; otherwise both are unchanged
  bool measure_noise = false;

  bool quantizes() const { return is_fp8(format); }
  DType descale_dtype() const { return rule == ScaleRule::e8m0 ? DType::e8m0 : DType::f32; }
  bool scale_known() const { return bool(scale); }
  /// One scale for every value of both orientations, or of a matrix, or for every block of 128x128: the codes of one are those of the
  /// other.
  bool same_codes() const { return cols == rows.transposed(); }
  /// Both orientations have a scale per tensor, or per matrix of a stack.
  bool scales_matrices() const { return rows.whole_matrices() && same_codes(); }
  /// Of a stack of matrices of so many rows, each has a scale.
  void scale_each(std::int64_t matrix_rows) { rows = {int(matrix_rows), 0}, cols = rows.transposed(); }
  /// A slice of a tensor's values can be encoded without the others, given the scales or the maxima of all: see quantize_slice().
  bool encodes_slices() const { return quantizes() && same_codes() && descale_dtype() == DType::f32; }
  /// The value of a code times its descale is a BF16 number, or the value is one and the descale a factor of all.
  bool fits_bf16(ScaleBlock block) const { return !decodes_with_descale(block) || rule != ScaleRule::quotient; }
  /// Of matrix e of a stack by itself; of others the same.
  QuantizeSpec of_matrix(std::int64_t e) const;
  /// Decoded codes have the descale in them; otherwise it is left as a factor of the whole tensor or matrix.
  bool decodes_with_descale(ScaleBlock block) const { return rule != ScaleRule::quotient || !block.whole_matrices(); }
  /// The scale of a tile of 128 rows is known once the tile is: a producer can then encode as it goes. Otherwise it stores its
  /// values, and a second pass encodes them: a maximum over the whole tensor, or over whole columns, must come first.
  bool local(bool want_cols) const {
    if (scale_known()) return true;
    return !rows.whole_tensor() && !(want_cols && (cols.whole_rows() || cols.whole_tensor()));
  }
};

/// Throws ContractError unless there are kernels for the spec's blocks and its known scale, if it has one, has their shape.
void check_quantizable(const QuantizeSpec&);

}  // namespace octet::ops
