#pragma once

#include "octet/numerics/math.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::ops {

template <class V>
struct NormalPair {
  V first, second;
};
/// Two independent standard normal values of two uniform ones.
template <class V>
OCTET_HD NormalPair<V> normal_pair(V u, V v) {
  const V radius = math::sqrt(V(-2.0f * math::log(u)));
  const auto angle = math::sin_cos(V(v * 0x1.921fb6p2f));
  return {radius * angle.cos, radius * angle.sin};
}

}  // namespace octet::ops
