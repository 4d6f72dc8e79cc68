#pragma once

#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Where an op puts the matrix that it makes, when that matrix feeds a GEMM: plain values, codes in one or both orientations, or
/// both. Every such op takes a Sink, so a fused quantize needs no second version of the op. A consumer makes it (nn::Linear),
/// a producer fills it tile by tile, then `codes` are the GEMM's operands.
///
/// Values are rounded to `dtype` before they are encoded, so fused and unfused give the same bits.
struct Sink {
  Shape shape;                // [rows, cols] of the matrix
  DType dtype = DType::bf16;  // of plain values: bf16 or f32
  Tensor plain;               // [rows, cols]; empty when nobody reads the values themselves
  QuantizeSpec spec;
  QTensor codes;       // an orientation nobody asked for is empty
  Tensor maxima = {};  // GPU: f32 [1 + lines], place for the maxima of tensor, rows and columns that codes wait for

  /// On a GPU a tile of values is encoded as it is made, unless a scale needs more than the tile: then maxima come first.
  bool waits() const;
};

/// Which operands a sink must hold, and for how long.
struct SinkRequest {
  Shape shape;
  DType dtype = DType::bf16;
  bool rows = true, cols = false;  // orientations
  Region rows_region = Lifetime::scratch, cols_region = Lifetime::scratch;
  bool keep_plain = false;  // plain values wanted as well, in cols_region
  Tensor plain = {};        // values that stand somewhere already: nothing plain is allocated
  Category category = Category::activations;
  bool for_gemm = false;   // gemm() alone reads the operands: they may stand as the target takes them fastest
  bool cols_left = false;  // there, the columns are its `a`; otherwise its `b`
};

/// Allocates what `spec` needs for the request. A tensor that is not quantized gets plain storage, and both orientations are views
/// of it. Throws ContractError unless the shape is [rows, cols] and dtype is f32 or bf16.
///
/// Operands are K-contiguous 8-bit codes. `for_gemm`, on a CPU, which multiplies decoded codes:
///   - In scratch they stand decoded to Target::gemm_compute, where that is exact: gemm() would need a place for that anyway. Elsewhere
///   they
///     stand as codes, except where one bf16 matrix takes the bytes of the codes of both orientations.
///   - Where GEMMs run in bf16, columns stand in the tensor's order, as a transposed view, unless `cols_left`: libraries read `b` equally
///     fast in either order, `a` faster when it is K-contiguous. Where one scale serves both orientations (per tensor, 128x128) and they
///     live equally long, such columns and the rows are one matrix.
Sink make_sink(Stream&, const QuantizeSpec&, const SinkRequest&);

}  // namespace octet::ops
