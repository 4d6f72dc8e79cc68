#pragma once

#include <cmath>
#include <numbers>

#include "octet/numerics/formats.hpp"

namespace octet {

/// The SQNR [dB] that rounding to the format alone leaves: the most that a tensor can have whose scale fits, so that no value is clipped,
/// flushed or subnormal. With m mantissa bits it is
///
///   10 log10(12 * 3 / (2 ln 2) * 4^m): 32.2 dB for E4M3, 26.2 dB for E5M2.
///
/// Derivation, for values that are spread evenly over binades: in [1, 2) their density is 1 / (x ln 2), so the signal has the power
/// integral of x^2 / (x ln 2) = 3 / (2 ln 2). Neighbours are u = 2^-m apart, and the error of rounding is evenly spread in [-u/2, u/2], so
/// the noise has the power u^2 / 12. Another binade multiplies both by the same factor.
template <class Format>
double rounding_sqnr() {
  return 10 * std::log10(12 * 3 / (2 * std::numbers::ln2) * std::pow(4, Format::mantissa_bits));
}

}  // namespace octet
