#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// y = f x with a constant f. A factor of 1 does nothing.
class Multiplier {
 public:
  explicit Multiplier(double factor = 1) : factor_(float(factor)) {}
  /// x <- f x, [any shape] f32, bf16 or f16, in FP32 and rounded once. It is also the gradient: dx = f dy.
  void apply(Stream& stream, const Tensor& x) const { apply(stream, x, x); }
  /// y <- f x of one shape and dtype; nothing where f is 1, and then y must be x.
  void apply(Stream&, const Tensor& x, const Tensor& y) const;

 private:
  float factor_;
};

}  // namespace octet::nn
