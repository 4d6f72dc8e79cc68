#pragma once

#include <span>

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// amax[t] = max |x[t][i]| of the finite values, 0 if there are none. x: T tensors of f32 or bf16; amax: f32 [T].
/// Throws ContractError on other shapes or dtypes.
void tensor_maxima(Stream&, std::span<const Tensor> x, const Tensor& amax);

/// scales[t] = {d / mu[t], amax[t]}, d the least power of two with amax[t] <= E4M3::max d: the scalars of Storage::e4m3_tensor for tensors
/// whose sum over several parts shall fit, too. A factor mu below 1 leaves room for sums.
/// amax, mu: f32 [T]; scales: f32 [T, 2]. Throws ContractError on other shapes or dtypes.
/// Source: Peng et al. 2023, "FP8-LM", section 2.1.
void common_scales(Stream&, const Tensor& amax, const Tensor& mu, const Tensor& scales);

/// When a factor mu grows.
enum class MuGrowth : std::uint8_t {
  never,            // nor does it shrink
  at_zero,          // while no code of the sum is the largest
  below_threshold,  // while the number of largest codes is at most its limit. Source: FP8-LM, section 2.1
};
/// One step of the factors: where largest[t] > limits[t] it is halved, to at least 2^-24; where it may grow it is multiplied by 2^(1/1000),
/// to at most 1, which is Octet's own limit. The doubling within 1000 steps is FP8-LM's.
/// mu: f32 [T]; counts: i64 [T, 2], of which [t, 0] is largest[t]; limits: i64 [T].
struct AdvanceMu {
  Tensor mu, counts, limits;
  MuGrowth growth = MuGrowth::at_zero;
};
/// Throws ContractError on other shapes or dtypes.
void advance_mu(Stream&, const AdvanceMu&);

}  // namespace octet::ops
