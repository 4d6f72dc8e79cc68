#pragma once

#include "octet/numerics/power.hpp"
#include "octet/ops/stored/view.hpp"

namespace octet::ops {

/// e4m3_expanded: x = sign(c) (|c| d)^(1 / k) g for the value c of a code, with f32 scalars d, k, g per 128 values:
///   g = sqrt(max min),   k = floor(16 log2(M^2 / 2) / log2(max / min)) / 16,   d = (max / g)^k / M,
/// where M is E4M3::max, and max and min are those of |x| over finite values other than 0. The power stretches a block of similar values
/// over E4M3's whole range, so that k times as many codes lie between two of them. Source: Xi et al. 2024, "COAT", section 4.1, with three
/// differences:
///   - zeros are no part of the minimum;
///   - k is at least 1, and min at least max 2^-16.6: one tiny value must not compress the others, it becomes 0. Where Tiny::keep is asked,
///     for second moments, k is at least 1 / 2 and min at least max 2^-33: a square has twice the range. With k >= 1 the small ones would
///     all become the least code; the update's error with log-normal gradients of sigma 2 is then 0.38, and 0.07 with 1 / 2;
///   - k is at most 64, also for a block of one magnitude, where the quotient is infinite.
/// max is held within 2^-100 .. 2^120, so that every scalar is a normal number. Powers are math.hpp's: their error, at most 2^-14 of a
/// value, adds to half a step of a code, 2^-4 / k.
struct ExpandedCodec {
  static constexpr float code_range = 16.614710f;  // log2(E4M3::max^2 / 2)
  static constexpr float most_k = 64, least_log = -100, most_log = 120;

  struct Scalars {
    float descale = 0, k = 0, g = 0;
    float factor = 0, offset = 0;  // decode: log2 |x| = factor log2 |c| + offset; encode: log2 |c| = factor log2 |x| + offset
  };

  OCTET_HD static float log_or_zero(float x) { return x > 0.0f ? math::log2_positive(x) : 0.0f; }

  OCTET_HD static Scalars stored(const StoredView& s, std::int64_t group) {
    const float* p = static_cast<const float*>(s.scales) + 3 * group;
    Scalars k{.descale = p[0], .k = p[1], .g = p[2]};
    k.factor = k.k > 0.0f ? 1.0f / k.k : 0.0f;
    k.offset = log_or_zero(k.descale) * k.factor + log_or_zero(k.g);
    return k;
  }
  OCTET_HD static Scalars of_extremes(float most, float least, Tiny tiny) {
    const float widest = tiny == Tiny::keep ? 2 * code_range : code_range;
    const auto within = [](float x, float low, float high) { return x < low ? low : x > high ? high : x; };
    const float top = most > 0.0f ? within(math::log2_positive(most), least_log, most_log) : 0.0f;
    const float range = within(most > 0.0f ? top - math::log2_positive(least) : 0.0f, 0, widest);
    const float quotient = range > code_range / most_k ? code_range / range : most_k;  // at least code_range / widest
    Scalars k;
    k.k = float(int(quotient * 16.0f)) * 0.0625f;
    k.g = math::exp2_within_126(top - range * 0.5f);
    const float log_g = math::log2_positive(k.g);
    k.descale = math::exp2_within_126((top - log_g) * k.k) * (1.0f / E4M3::max);
    k.factor = k.k, k.offset = -(log_g * k.k + math::log2_positive(k.descale));
    return k;
  }
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes lanes, const StoredView& s, const typename Lanes::Group& x) {
    // The minimum as a maximum of reciprocal order: bits of positive floats are ordered as they are.
    const auto size = [](auto v) { return finite_magnitude(v); };
    const auto or_most = [](auto v) {
      const auto size = finite_magnitude(v);
      return size > 0.0f ? size : splat<decltype(v)>(0x1.fffffep127f);
    };
    auto most = lanes.map(x.v[0], size), least = lanes.map(x.v[0], or_most);
    for (int i = 1; i < Lanes::packs; ++i) most = larger(lanes.map(x.v[i], size), most), least = smaller(lanes.map(x.v[i], or_most), least);
    return of_extremes(lanes.group_max(most), lanes.group_min(least), s.tiny);
  }
  OCTET_HD static void keep(const StoredView& s, std::int64_t group, const Scalars& k) {
    float* p = static_cast<float*>(s.scales) + 3 * group;
    p[0] = k.descale, p[1] = k.k, p[2] = k.g;
  }

  /// 2^(factor log2 |x| + offset) with x's sign; 0 and NaN stay.
  template <class V>
  OCTET_HD static V power(V x, const Scalars& k) {
    const V size = magnitude(x);
    const V some = size > 0.0f ? size : splat<V>(1);  // NaN, too
    const V y = math::exp2_within_126(V(math::log2_positive(some) * k.factor + k.offset));
    const V with_sign = value_of<V>(IntOf<V>(int_of(y) | (int_of(x) & std::int32_t(0x80000000))));
    return size > 0.0f ? with_sign : x;
  }

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at) {
    return lanes.map(lanes.load(s.as<std::uint8_t>(), at), [&](auto c) { return power(c, k); });
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    const auto y = lanes.map(x, [&](auto v) { return power(infinite_as_nan(v), k); });
    lanes.store(s.as<std::uint8_t>(), at, lanes.scaled(y, 1.0f, s.tiny, E4M3::min_subnormal), draws);
  }
};

}  // namespace octet::ops
