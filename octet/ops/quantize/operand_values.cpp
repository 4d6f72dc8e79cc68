#include "octet/ops/quantize/operand_values.hpp"

#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {

Quantized operand_values(Stream& stream, const Quantized& q, DType type) {
  if (!q.eight_bit()) {
    check(q.codes.dtype == type, "operand_values: wants values of {}, got {}", type, q.codes.dtype);
    return q;
  }
  check(type == DType::f32 || type == DType::bf16, "operand_values: codes are decoded to f32 or bf16, not to {}", type);
  const Quantized out{.codes = stream.empty(q.codes.shape, type), .transposed = q.transposed};
  stream.count({.ops = 1, .bytes = double(q.codes.bytes() + out.codes.bytes())});
  OCTET_LAUNCH(stream, decode_operand, q, true, out.codes);
  return out;
}

Quantized transposed(const Quantized& values) {
  check(!values.eight_bit() && !values.descales, "transposed: {} codes are no values", values.codes.dtype);
  return {.codes = values.codes, .transposed = !values.transposed};
}

}  // namespace octet::ops
