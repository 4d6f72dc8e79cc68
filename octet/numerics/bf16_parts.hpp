#pragma once

#include "octet/numerics/formats.hpp"

namespace octet {

/// x as a sum of three BF16 values of its sign, each of which has the next eight bits of its significand: exact from 2^-110 on, else to
/// 2^-133. Of infinity and NaN, the first part is x and the others are 0.
/// Source: Henry, Tang & Heinecke 2019, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations".
struct Bf16Parts {
  Bf16 part[3];
};
OCTET_HD constexpr Bf16Parts bf16_parts(float x) {
  Bf16Parts out{};
  if ((bits_of(x) & 0x7F800000u) == 0x7F800000u) {
    out.part[0] = from_float<Bf16>(x);
    return out;
  }
  for (Bf16& part : out.part) {
    const std::uint32_t top = bits_of(x) & 0xFFFF0000u;
    part.bits = std::uint16_t(top >> 16);
    x -= float_of(top);  // exact
  }
  return out;
}

}  // namespace octet
