#pragma once

#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The destination of a matrix that an op produces for a GEMM: plain values, codes in one or both orientations, or both. Every such op has
/// a Sink argument, so fused quantization needs no second version of the op. The consumer (nn::Linear) creates it, the producer fills it
/// tile by tile, then `codes` are the GEMM's operands.
///
/// Values are rounded to `dtype` before they are encoded, so fused and unfused give the same bits.
struct Sink {
  Shape shape;                // [rows, cols] of the matrix
  DType dtype = DType::bf16;  // of plain values: f32, bf16, or f16, which is never quantized
  Tensor plain;               // [rows, cols]; empty if the values are not read
  QuantizeSpec spec;
  QTensor codes;       // an orientation that was not requested is empty
  Tensor maxima = {};  // GPU: f32 [1 + lines], memory for maxima of tensor, rows and columns, if codes need them first

  /// On a GPU a tile of values is encoded as it is made, unless a scale needs more than the tile: then maxima come first.
  bool waits() const;
};

/// The operands of a sink and their lifetimes.
struct SinkRequest {
  Shape shape;
  DType dtype = DType::bf16;
  bool rows = true, cols = false;  // orientations
  Region rows_region = Lifetime::scratch, cols_region = Lifetime::scratch;
  bool keep_plain = false;  // also store plain values, in cols_region
  Tensor plain = {};        // existing memory for plain values: none is allocated
  Category category = Category::activations;
  Quantized codes = {};    // existing K-contiguous row codes: the row operand is these where codes are wanted; see fill_from_codes()
  bool for_gemm = false;   // only gemm() reads the operands: they may be in the target's fastest form
  bool cols_left = false;  // there, the columns are its `a`; otherwise its `b`
};

/// Allocates what `spec` needs for the request. A tensor that is not quantized gets plain storage, and both orientations are views
/// of it. Throws ContractError unless the shape is [rows, cols] and dtype is f32, bf16, or f16 with a
/// spec that does not quantize.
///
/// Operands are K-contiguous 8-bit codes. `for_gemm`, on a CPU, which multiplies decoded codes:
///   - In scratch they are decoded to Target::gemm_compute, if that is exact: gemm() would need memory for that anyway. In other regions
///     they are codes, unless one bf16 matrix takes no more bytes than the codes of both orientations.
///   - If GEMMs run in bf16, columns are a transposed view of the tensor's order, unless `cols_left`: libraries read `b` equally fast in
///     either order, `a` faster when it is K-contiguous. If both orientations share their scales (per tensor, 128x128) and their lifetime,
///     such columns and the rows are one matrix.
Sink make_sink(Stream&, const QuantizeSpec&, const SinkRequest&);

/// Whether the columns may be a view of SinkRequest::codes, which must then live as long as they do.
bool columns_view_codes(const Stream&, const SinkRequest&);

}  // namespace octet::ops
