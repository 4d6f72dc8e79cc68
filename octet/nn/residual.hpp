#pragma once

#include <memory>

#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// Rounds the residual stream to the values of an 8-bit operand, in place: the experiment of Micikevicius et al. 2022, section 4,
/// that separates one global scale from one per tensor. Off by default, when apply() does nothing.
class ResidualQuantizer {
 public:
  ResidualQuantizer(bool on, std::int64_t width, scaling::Precision&);
  bool on() const { return plan_.x != nullptr; }
  /// Whether it changed x.
  bool apply(Stream&, const Tensor& x, const scaling::Pass&) const;

 private:
  scaling::LinearPlan plan_;
};

}  // namespace octet::nn
