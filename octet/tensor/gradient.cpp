#include "octet/tensor/gradient.hpp"

#include "octet/base/check.hpp"

namespace octet {

void Gradient::add_use(GradientUse use, int pass) {
  pending_[std::size_t(pass)] = ++uses_[std::size_t(pass)];
  product_ |= use != GradientUse::sum;
  sums_parts_ |= use != GradientUse::product;
}

void Gradient::bind(const Stored& stored, const Tensor& draws) {
  stored_ = stored, draws_ = draws;
  check(!coded() || may_be_narrow() || uses() == 1, "gradient: a sum of many parts cannot be stored as {}", stored.storage);
  check(!coded() || bool(draws), "gradient: {} needs the numbers of its draws", stored.storage);
}

void Gradient::begin(Contents contents) {
  check(contents != Contents::stale || product_ || coded(), "gradient: without a GEMM to store its first sum it must begin at zero");
  contents_ = contents, pending_ = uses_, numbered_ = false;
}

void Gradient::begin_micro_batch() {
  numbered_ = true;
  if (shares_) contents_ = Contents::foreign;
  if (coded()) contents_ = Contents::zero;  // ops::accumulate stores in the first micro-batch and adds in others
}

Gradient::Target Gradient::target(Stream& stream, GradientUse use) {
  check(bool(stored_), "gradient: backward in a model without storage for gradients");
  if (coded()) {
    check(numbered_, "gradient: nn::Parameters::begin_micro_batch() must come before the backward of each micro-batch");
    numbered_ = false;
    return {stream.empty(stored_.shape(), scratch_type(stream), Lifetime::scratch, Category::workspace), false};
  }
  if (contents_ == Contents::foreign && listener_ != nullptr) listener_->begin(stream, *this);
  if (contents_ == Contents::foreign && use == GradientUse::sum) {
    clear(stream, stored_.values());
    contents_ = Contents::zero;
  }
  const bool accumulate = contents_ == Contents::zero;
  check(accumulate || use != GradientUse::sum, "gradient: a sum would add to the contents of an earlier step");
  contents_ = Contents::zero;
  return {stored_.values(), accumulate};
}

void Gradient::done(Stream& stream, int pass) {
  int& pending = pending_[std::size_t(pass)];
  check(pending > 0, "gradient: done() without a declared use");
  if (--pending > 0) return;
  pending = uses_[std::size_t(pass)];
  if (listener_ != nullptr) listener_->complete(stream, *this);
}

}  // namespace octet
