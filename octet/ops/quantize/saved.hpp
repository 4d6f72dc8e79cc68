#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// Consecutive values of a row that share one scale of a saved activation.
inline constexpr int saved_block = 32;

/// How saved activations are encoded: E4M3 with an E8M0 scale per 32 values of a row. Powers of two, rounded up, saturate nothing.
/// Sources: Xi et al. 2024, "COAT", section 5, there with 1x16 blocks; OCP MX 1.0, section 5.
QuantizeSpec saved_spec();

/// A matrix [T, C] that forward saves for backward: its values, or their codes by saved_spec(). To an op of forward it may have both: the
/// op reads the values and writes the codes.
struct Saved {
  Tensor values;    // f32 or bf16; empty in backward if there are codes
  Quantized codes;  // 1x32 blocks
  Shape shape;
  DType dtype = DType::bf16;  // of the values

  Saved() = default;
  Saved(const Tensor& x) : values(x), shape(x.shape), dtype(x.dtype) {}
  Saved(const Quantized& q, DType of_values) : codes(q), shape(q.codes.shape), dtype(of_values) {}

  /// There are codes alone.
  bool coded() const { return codes && !values; }
  std::size_t bytes() const { return (values ? values.bytes() : 0) + (codes ? codes.codes.bytes() + codes.descales.bytes() : 0); }
};

/// The place of the codes of x, in `region`, for quantize() or an op that encodes its input.
Sink saved_sink(Stream&, const Tensor& x, const QuantizeSpec&, Region);

/// x for an op of forward that is to fill `codes`, a saved_sink() of x, or null: x with their place, to be written in the op's own pass.
/// If the sink asks for a maximum or health, quantize() fills it here instead, and x comes back alone.
Saved saving(Stream&, const Saved& x, Sink* codes);

/// Its values; codes are decoded into scratch.
Tensor values_of(Stream&, const Saved&);

/// Throws ContractError unless codes have E8M0 scales of 1x32 blocks and each of `parts` equal parts of the columns is a multiple of 32.
void check_saved(const Saved&, int parts, const char* op);

}  // namespace octet::ops
