#pragma once

#include "octet/ops/quantize/sink.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/scaling/slots.hpp"

namespace octet::nn {

using scaling::Operand;

/// A request for the operands of a tensor of a layer, x [T, in] or dy [T, out], in the orientations that its products read:
///
///   y = x w^T   rows of x        dx = dy w   rows of dy        dw = dy^T x   columns of both
///
/// Where the tensor comes from: an op produces it (`tokens`), it is there (`values`), or members gather it from their rows
/// (nn/gathered.hpp: `tokens` or `values` are the own ones).
struct OperandRequest {
  Operand tensor = Operand::activation;  // or gradient
  bool rows = true, cols = true;
  std::int64_t tokens = 0;  // T of a tensor that comes, in the type of activations; its values are stored if an op reads them
  Tensor values = {};       // the tensor, or the memory where an op will store its values; f32, bf16 or f16

  std::int64_t count() const { return values ? values.shape[0] : tokens; }
  /// Where columns live, until the weight's product reads them. Values, too, of which operands are views.
  Region region(const scaling::Pass& pass) const {
    if (!cols) return Lifetime::scratch;
    return tensor == Operand::gradient ? pass.backward_operands() : pass.forward_operands();
  }
};

/// The operands of a layer's sink, once it is filled: rows without codes are the values, if these are stored.
inline QTensor operands_of(const ops::Sink& sink) {
  return {sink.codes.rows || !sink.plain ? sink.codes.rows : Quantized{.codes = sink.plain}, sink.codes.cols};
}

}  // namespace octet::nn
