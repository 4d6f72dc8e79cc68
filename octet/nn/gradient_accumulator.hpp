#pragma once

#include "octet/nn/weight_gradient.hpp"

namespace octet::nn {

/// A use of a gradient to which backward adds many parts in a micro-batch: chunks of tokens of a head, rows of an embedding. Where the
/// gradient is stored in 8 bits, which cannot be added to, parts are added to plain values in scratch, and end() adds these to the codes
/// once. Otherwise parts are added in place.
class GradientAccumulator {
 public:
  /// Scratch of `type`, f32 or bf16, that lives until the caller's scope ends; only if `used`. The parameter outlives this.
  GradientAccumulator(Stream&, Parameter&, DType type, bool used = true);
  /// The use is complete, of that pass of a micro-batch. Before it the gradient has the parts of this micro-batch alone.
  void end(Stream&, int pass = 0);

 private:
  Parameter& parameter_;
  Stored codes_;  // empty: parts are added in place
  bool used_;
};

}  // namespace octet::nn
