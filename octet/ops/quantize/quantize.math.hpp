#pragma once

#include "octet/numerics/power.hpp"
#include "octet/numerics/scale.hpp"
#include "octet/ops/quantize/block_health.hpp"

// Quantization of one value or a register of values. For scales from maxima see numerics/scale.hpp.

namespace octet::ops {

/// Up to this scale a code's value times a descale that is a power of two is a BF16 number: the descale leaves the value's bits as they
/// are unless it takes them below 2^-133, and the least code is 2^-16.
inline constexpr float largest_exact_scale = 0x1p100f;

/// Counts of events, per lane.
template <class V>
struct HealthCounts {
  IntOf<V> saturated{}, flushed{}, nonfinite{};
};

/// Counts the events of encoding x * scale as `code`. A product that rounds to the largest value is not saturated, though it may be above
/// it. The product of an amax and its own scale is above it, by one rounding, for one float in eleven.
template <class Format, class V>
OCTET_HD void count_health(V x, V scale, IntOf<V> code, HealthCounts<V>& n) {
  using Int = IntOf<V>;
  n.saturated = magnitude(V(x * scale)) > splat<V>(Format::nearest_to_max) ? n.saturated + 1 : n.saturated;
  n.nonfinite = (int_of(x) & 0x7FFFFFFF) >= 0x7F800000 ? n.nonfinite + 1 : n.nonfinite;
  const Int kept = x != splat<V>(0) ? code & 0x7F : Int{} + 1;
  n.flushed = kept == 0 ? n.flushed + 1 : n.flushed;
}

/// log2 of a scale in BlockHealth::units, to nearest; exact for powers of two.
OCTET_HD int log_units(float scale) {
  const float x = math::log2_positive(scale) * float(BlockHealth::units);
  return int(x < 0 ? x - 0.5f : x + 0.5f);
}

}  // namespace octet::ops
