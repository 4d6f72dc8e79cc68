#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// Consecutive values of a row that share one scale of a saved activation.
inline constexpr int saved_block = 32;

/// How saved activations are encoded: E4M3 with an E8M0 scale per 32 values of a row. Powers of two, rounded up, saturate nothing.
/// Sources: Xi et al. 2024, "COAT", section 5, there with 1x16 blocks; OCP MX 1.0, section 5.
QuantizeSpec saved_spec();

/// A matrix [T, C] that forward saves for backward: its values, or their codes by saved_spec().
struct Saved {
  Tensor values;    // f32 or bf16; empty if there are codes
  Quantized codes;  // 1x32 blocks; empty if there are values
  Shape shape;
  DType dtype = DType::bf16;  // of the values

  Saved() = default;
  Saved(const Tensor& x) : values(x), shape(x.shape), dtype(x.dtype) {}
  Saved(const Quantized& q, DType of_values) : codes(q), shape(q.codes.shape), dtype(of_values) {}

  bool coded() const { return bool(codes); }
  std::size_t bytes() const { return coded() ? codes.codes.bytes() + codes.descales.bytes() : values.bytes(); }
};

/// The place of the codes of x, in `region`, for quantize() or an op that encodes its input.
Sink saved_sink(Stream&, const Tensor& x, const QuantizeSpec&, Region);

/// Its values; codes are decoded into scratch.
Tensor values_of(Stream&, const Saved&);

/// Throws ContractError unless codes have E8M0 scales of 1x32 blocks, and `parts` equal parts of the columns are whole blocks.
void check_saved(const Saved&, int parts, const char* op);

}  // namespace octet::ops
