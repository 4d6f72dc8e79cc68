#pragma once

#include "octet/ops/common_scale/common_scale.hpp"
#include "octet/ops/stored/view.hpp"

namespace octet::ops {

inline constexpr float mu_step = 1.00069338746258f;  // 2^(1/1000)
inline constexpr float least_mu = 0x1p-24f;

OCTET_HD constexpr float common_descale(float amax, float mu) { return power_of_two_descale<E4M3>(amax) / mu; }

OCTET_HD constexpr float next_mu(float mu, std::int64_t largest, std::int64_t limit, MuGrowth growth) {
  if (growth == MuGrowth::never) return mu;
  if (largest > limit) return mu / 2 > least_mu ? mu / 2 : least_mu;
  if (growth == MuGrowth::at_zero && largest > 0) return mu;
  return mu * mu_step < 1 ? mu * mu_step : 1.0f;
}

}  // namespace octet::ops
