#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "octet/tensor/parameter.hpp"

namespace octet::nn {

// Sums of backward. Those of a parameter that does not train, which has no memory for a gradient, are left out.

inline bool trains(const Parameter& p) { return bool(p.gradient.stored()); }

/// Adds a product to a gradient in 8 bits, where `dw` is scratch; others have it already.
void add_codes(Stream&, Parameter&, const Tensor& dw);

/// One use of the gradient by a GEMM: multiply(target), which stores or adds. A use of products is completed by its owner.
template <class Multiply>
void add_product(Stream& stream, Parameter& p, GradientUse use, const Multiply& multiply) {
  if (!trains(p)) return;
  {
    const Scope scope(stream);
    const Gradient::Target dw = p.gradient.target(stream, use);
    multiply(dw);
    add_codes(stream, p, dw.data);
  }
  if (use == GradientUse::product) p.gradient.done(stream);
}

/// One use of the gradient, GradientUse::product, by a GEMM per round: the first stores where one GEMM would, others add. Memory of a
/// gradient in 8 bits is in scratch until finish(), and the use is completed by sum_done(). With `again`, a plan's use that was made before
/// is only given its memory.
class ProductSum {
 public:
  ProductSum(Stream&, Parameter&, bool again);
  /// multiply(target), which stores or adds.
  template <class Multiply>
  void add(const Multiply& multiply) {
    if (!trains(parameter_)) return;
    multiply(target_);
    target_.accumulate = true;
  }
  void finish(Stream&);

 private:
  Parameter& parameter_;
  Gradient::Target target_{};
};

/// Where GEMMs of a stack's gradients put their products. In this form each is a use, GradientUse::product.
class GradientProducts {
 public:
  using Multiply = std::function<void(const Gradient::Target&)>;
  virtual ~GradientProducts() = default;
  /// multiply(target), which stores or adds, where the parameter trains.
  virtual void add(Stream& stream, Parameter& p, const Multiply& multiply) { add_product(stream, p, GradientUse::product, multiply); }
};

/// Products of several rounds: one ProductSum per parameter.
class RoundProducts final : public GradientProducts {
 public:
  RoundProducts(Stream&, std::vector<Parameter*>, bool again);
  void add(Stream&, Parameter&, const Multiply&) override;
  /// In the reverse order of the parameters.
  void finish(Stream&);

 private:
  std::vector<Parameter*> parameters_;
  std::deque<ProductSum> sums_;
};

/// Where an op that only adds puts its sum, f32 of the parameter's shape: scratch where the parameter does not train.
Tensor sum_target(Stream&, Parameter&);
/// That use is complete.
void sum_done(Stream&, Parameter&, int pass = 0);

}  // namespace octet::nn
