#pragma once

#include <array>

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// Precision of attention's products: as activations are, or through 8-bit codes, in forward alone or in backward, too.
enum class AttentionPrecision : std::uint8_t { bf16, fp8_forward, fp8 };
std::string to_text(AttentionPrecision);

/// How the attention of one block runs: made before the first step, printed, stored in the run folder.
struct AttentionPlan {
  AttentionPrecision precision = AttentionPrecision::bf16;
  std::string path;
  std::array<std::unique_ptr<Quantizer>, 10> quantizers = {};  // of q to dv; null where nothing is encoded

  bool codes() const { return precision != AttentionPrecision::bf16; }
  bool codes_gradients() const { return precision == AttentionPrecision::fp8; }
  const Quantizer& of(Operand o) const { return *quantizers[std::size_t(o) - std::size_t(Operand::q)]; }
};

}  // namespace octet::scaling
