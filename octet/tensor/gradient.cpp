#include "octet/tensor/gradient.hpp"

#include "octet/base/check.hpp"

namespace octet {

void Gradient::add_use(GradientUse use) {
  pending_ = ++uses_;
  product_ |= use != GradientUse::sum;
  sums_parts_ |= use != GradientUse::product;
}

void Gradient::begin(Contents contents) {
  check(contents == Contents::zero || product_, "gradient: without a GEMM to store its first sum it must begin at zero");
  contents_ = contents, pending_ = uses_;
}

Gradient::Target Gradient::target(GradientUse use) {
  check(bool(data_), "gradient: backward in a model without storage for gradients");
  const bool accumulate = contents_ == Contents::zero;
  check(accumulate || use != GradientUse::sum, "gradient: a sum would add to the contents of an earlier step");
  contents_ = Contents::zero;
  return {data_, accumulate};
}

void Gradient::done() {
  check(pending_ > 0, "gradient: done() without a declared use");
  if (--pending_ == 0) pending_ = uses_;
}

}  // namespace octet
