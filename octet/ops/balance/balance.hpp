#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The gradient of a loss that is `factor` times the sum of counts c_e times sums of scores, which depend on the router alone:
///
///   dscores[s, e] = factor * scale * counts[s, e]
///
/// counts: f32 [S, E], choices of experts; scale: f32 [1] on the device, or empty; dscores: f32 [S, E], overwritten. Throws ContractError
/// on other shapes or dtypes. Source: Fedus et al. 2022, "Switch Transformers", eq. 4.
struct BalanceGradient {
  Tensor counts, scale, dscores;
  float factor = 1;
};
void balance_gradient(Stream&, const BalanceGradient&);

/// The bias of each expert's choice after a step:
///
///   bias[l, e] += rate * sign(mean over e of counts[l, e] - counts[l, e])
///
/// counts, bias: f32 [L, E]; skip: f32 [1] on the device, not 0 for a step that was not applied: then nothing changes. Throws ContractError
/// on other shapes or dtypes. Source: Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts", algorithm 1.
struct BalanceBias {
  Tensor counts, skip, bias;
  float rate = 0;
};
void balance_bias(Stream&, const BalanceBias&);

}  // namespace octet::ops
