#pragma once

#include <cstdint>

#include "octet/numerics/formats.hpp"
#include "octet/numerics/math.hpp"

namespace octet::testing {

/// The lanes of an op's row body for one value at a time of a number type: double or Dual for references and derivatives, float.
template <class Number>
struct NumberLane {
  using Value = Number;

  template <class F>
  void each(std::int64_t n, F&& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  bool first() const { return true; }

  template <class T>
  Number load(const T* p, std::int64_t at) const {
    return p[at];
  }
  Number load(const Bf16* p, std::int64_t at) const { return to_float(p[at]); }
  template <class T>
  void store(T* p, std::int64_t at, Number v) const {
    p[at] = v;
  }
  Number within(Number v, std::int64_t, float = 0) const { return v; }

  Number fma(Number a, Number b, Number c) const { return a * b + c; }
  Number sqrt(Number v) const {
    using math::sqrt;
    return sqrt(v);
  }
  Number sum(Number v) const { return v; }
  Number max(Number v) const { return v; }
};

}  // namespace octet::testing
