#pragma once

#include "octet/ops/adamw/adamw.hpp"

namespace octet::ops {

/// Decides on the device how the optimizer uses this step's gradients, with unscale = gradient_factor / loss_scale and norm =
/// sqrt(sum_of_squares) * unscale:
///   gradient_norm = norm,   gradient_scale = unscale * max_norm / max(norm, max_norm),   skip = 0
/// or, where an element of loss or the norm is not finite, one of nonfinite is above 0, or the update could not be finite in FP32 (the
/// learning rate is not, or the norm after clipping is clip_largest or more, so that a square may overflow): gradient_scale = 0, skip = 1.
/// Where all these are finite, but an element of loss is above limits[0] or the norm above limits[1]: gradient_scale = 0, skip = 2.
/// An applied step also counts: updates + 1, power = power * beta, and bias_correction = 1 / (1 - power); a skipped one leaves them.
/// sum_of_squares: f64 [1], of all stored gradients; step: f32 [12], an AdamWStep, of which only these are written. May be
/// empty: loss f32 [n]; nonfinite i64 [n], counters; gradient_factor f32 [1], by which gradients are too small; loss_scale f32 [1], by
/// which they are too large; limits f32 [2]. max_norm 0 does not clip.
/// Source: Pascanu, Mikolov & Bengio 2013, "On the difficulty of training recurrent neural networks", algorithm 1.
struct Clip {
  Tensor sum_of_squares;
  Tensor step;
  float max_norm = 0;
  double beta1 = 0.9, beta2 = 0.95;
  Tensor loss = {}, nonfinite = {}, gradient_factor = {}, loss_scale = {}, limits = {};
};
inline constexpr double clip_largest = 0x1p63;
/// Throws ContractError on other shapes or dtypes, or a negative or NaN max_norm.
void clip(Stream&, const Clip&);

}  // namespace octet::ops
