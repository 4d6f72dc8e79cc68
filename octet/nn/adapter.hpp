#pragma once

#include "octet/nn/visitor.hpp"
#include "octet/nn/weight_gradient.hpp"
#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// A product that is added to that of a linear layer, or of a stack of them, whose own weight then does not train. This form adds nothing.
class Adapter {
 public:
  virtual ~Adapter() = default;
  /// Whether backward reads x and the values of dy.
  virtual bool reads_operands() const { return false; }
  /// y [T, out] += adapted(x [T, in]).
  virtual void forward(Stream&, const Quantized& x, const Tensor& y, const scaling::Pass&) { (void)x, (void)y; }
  /// dx [T, in] += its gradient, unless dx is empty; adds to the gradients of the adapter's own parameters. dy: values [T, out]; x: as
  /// LinearSite::Saved, [in, T].
  virtual void backward(Stream&, const Tensor& dy, const Quantized& x, const Tensor& dx) { (void)dy, (void)x, (void)dx; }
  /// The same of a stack of layers, each of which has a group of the rows. Returns the tensor in `keep` that backward reads again; y
  /// may be empty, where only that one is wanted.
  virtual Tensor forward_stack(Stream&, const Quantized& x, const ops::RowGroups&, const Tensor& y, const scaling::Pass&, Region keep) {
    (void)x, (void)y, (void)keep;
    return {};
  }
  /// Rows of dy and columns of x without a token are 0. dx is there.
  virtual void backward_stack(Stream&, const Tensor& dy, const Quantized& x, const Tensor& kept, const ops::RowGroups&, const Tensor& dx,
                              GradientProducts&) {
    (void)dy, (void)x, (void)kept, (void)dx;
  }
  virtual void visit(Visitor&) {}
};

}  // namespace octet::nn
