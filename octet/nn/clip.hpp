#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// Keeps values between -limit and limit, whose gradient is 0 outside. Without a limit, which is 0, it does nothing.
class Clip {
 public:
  explicit Clip(double limit = 0) : limit_(float(limit)) {}
  explicit operator bool() const { return limit_ > 0; }

  /// x [T, C], in place. With a limit and `saves`, returns the bits of values outside, in `region`; otherwise nothing.
  Tensor forward(Stream&, const Tensor& x, Region, bool saves) const;
  /// The gradient, in place; `outside`: as forward returned it.
  void backward(Stream&, const Tensor& dx, const Tensor& outside) const;

 private:
  float limit_;
};

}  // namespace octet::nn
