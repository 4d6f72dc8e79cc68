#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/testing/lanes.hpp"

// Computed tolerances for formulas of any length: a formula run on Bounded instead of float gives its value in double, and a bound
// on how far the float result may be from it. Source: Higham 2002, section 3.3, "running error analysis".

namespace octet::testing {

/// `value` as if computed exactly (double), and |float result - value| <= error. `size` is the sum of magnitudes of a sum's terms.
struct Bounded {
  static constexpr double unit = 0x1p-24, smallest = 0x1p-149;
  double value = 0, error = 0, size = 0;

  Bounded() = default;
  Bounded(double exact) : value(exact), size(std::fabs(exact)) {}
  /// A float result of one operation whose exact result on the float operands is within `error` of value.
  static Bounded rounded(double value, double error, double size, double units = 1) {
    Bounded out(value);
    out.error = error + units * unit * (std::fabs(value) + error) + smallest;
    out.size = size;
    return out;
  }
  static Bounded rounded(double value, double error) { return rounded(value, error, std::fabs(value)); }

  friend Bounded operator+(Bounded a, Bounded b) { return rounded(a.value + b.value, a.error + b.error, a.size + b.size); }
  friend Bounded operator-(Bounded a) {
    a.value = -a.value;
    return a;
  }
  friend Bounded operator-(Bounded a, Bounded b) { return a + -b; }
  friend Bounded operator*(Bounded a, Bounded b) {
    return rounded(a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
  }
  friend Bounded operator/(Bounded a, Bounded b) {
    const double quotient = a.value / b.value;
    return rounded(quotient, (a.error + std::fabs(quotient) * b.error) / (std::fabs(b.value) - b.error));
  }
  friend bool operator<(Bounded a, Bounded b) { return a.value < b.value; }
  friend bool operator>(Bounded a, Bounded b) { return a.value > b.value; }
};

inline Bounded sqrt(Bounded x) {
  const double root = std::sqrt(x.value);
  return Bounded::rounded(root, x.error == 0 ? 0 : x.error / (root + std::sqrt(std::max(0.0, x.value - x.error))));
}
/// math::exp is within one unit in the last place, two units of rounding.
inline Bounded exp(Bounded x) {
  const double e = std::exp(x.value);
  return Bounded::rounded(e, e * std::expm1(x.error), e, 2);
}
/// math::exp_within_86 is within (3 + |x| / 4) units of rounding.
inline Bounded exp_within_86(Bounded x) {
  const double e = std::exp(x.value);
  return Bounded::rounded(e, e * std::expm1(x.error), e, 3 + std::fabs(x.value) / 4);
}
inline Bounded magnitude(Bounded x) { return x.value < 0 ? -x : x; }
inline Bounded larger(Bounded x, Bounded most) { return x.value > most.value ? x : most; }
inline Bounded smaller(Bounded x, Bounded least) { return x.value < least.value ? x : least; }

/// A sum whose terms may be added in another order, in which no term goes through more than `depth` additions.
inline Bounded in_any_order(Bounded sum, double depth) {
  sum.error += depth * Bounded::unit * sum.size;
  return sum;
}

/// Lanes for row bodies: their sums hold for the order of any instruction set, eight lanes or more.
struct BoundedLane : NumberLane<Bounded> {
  mutable std::int64_t terms = 0;

  template <class F>
  void each(std::int64_t n, F&& f) const {
    terms = n;
    NumberLane::each(n, f);
  }
  Bounded sum(Bounded v) const { return in_any_order(v, double((terms + 7) / 8 + 4)); }
};

template <class Range>
std::vector<Bounded> bounded(const Range& exact) {
  return std::vector<Bounded>(exact.begin(), exact.end());
}

}  // namespace octet::testing
