#pragma once

#include "octet/ops/clamp_columns/clamp_columns.hpp"

namespace octet::nn {

/// Keeps values between -limit and limit, whose gradient is 0 outside. Without a limit, which is 0, columns are only copied.
class Clip {
 public:
  explicit Clip(double limit = 0) : limit_(float(limit)) {}
  explicit operator bool() const { return limit_ > 0; }

  /// Copies columns, within the limits; they may be copied onto themselves. With a limit and `saves`, returns the bits of those outside, in
  /// `region`; otherwise nothing.
  Tensor forward(Stream&, const ops::CopyColumns&, Region, bool saves) const;
  /// Copies columns of the gradient; `outside`: as forward returned it.
  void backward(Stream&, const ops::CopyColumns&, const Tensor& outside) const;

 private:
  float limit_;
};

}  // namespace octet::nn
