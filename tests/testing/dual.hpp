#pragma once

#include <cmath>

#include "octet/numerics/math.hpp"

// A dual number a + b e with e * e = 0: a formula run on Dual{x, 1} gives f(x) and f'(x), exact up to rounding in double.
// Give it to the template of a forward formula in place of float; exp, tanh, larger ... are found by argument lookup.

namespace octet::testing {

struct Dual {
  double value = 0, slope = 0;
  constexpr Dual() = default;
  constexpr Dual(double value, double slope = 0) : value(value), slope(slope) {}

  friend constexpr Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend constexpr Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend constexpr Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend constexpr Dual operator/(Dual a, Dual b) {
    return {a.value / b.value, (a.slope * b.value - a.value * b.slope) / (b.value * b.value)};
  }
  constexpr Dual& operator+=(Dual b) { return *this = *this + b; }
  constexpr Dual& operator-=(Dual b) { return *this = *this - b; }
  constexpr Dual& operator*=(Dual b) { return *this = *this * b; }
  constexpr Dual& operator/=(Dual b) { return *this = *this / b; }
  friend constexpr bool operator<(Dual a, Dual b) { return a.value < b.value; }
  friend constexpr bool operator>(Dual a, Dual b) { return a.value > b.value; }
  friend constexpr bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  friend constexpr bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
  friend constexpr bool operator==(Dual a, Dual b) { return a.value == b.value; }
};

/// f(x) given f and f' at x.value: the chain rule.
constexpr Dual chain(Dual x, double f, double derivative) { return {f, derivative * x.slope}; }

inline Dual exp(Dual x) { return chain(x, std::exp(x.value), std::exp(x.value)); }
inline Dual log(Dual x) { return chain(x, std::log(x.value), 1 / x.value); }
inline Dual tanh(Dual x) {
  const double t = std::tanh(x.value);
  return chain(x, t, 1 - t * t);
}
inline Dual sin(Dual x) { return chain(x, std::sin(x.value), std::cos(x.value)); }
inline Dual cos(Dual x) { return chain(x, std::cos(x.value), -std::sin(x.value)); }
inline math::SinCos<Dual> sin_cos(Dual x) { return {sin(x), cos(x)}; }
inline Dual sqrt(Dual x) { return chain(x, std::sqrt(x.value), 0.5 / std::sqrt(x.value)); }
inline Dual magnitude(Dual x) { return x.value < 0 ? -x : x; }
inline Dual larger(Dual x, Dual most) { return x.value > most.value ? x : most; }
inline Dual smaller(Dual x, Dual least) { return x.value < least.value ? x : least; }

}  // namespace octet::testing
