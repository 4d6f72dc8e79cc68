#pragma once

#include <memory>

#include "octet/nn/adapter.hpp"
#include "octet/nn/operand_request.hpp"
#include "octet/nn/weight.hpp"
#include "octet/nn/weight_gradient.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// The part of a linear layer that does not depend on how its products are computed: weight, gradient, and the quantizers of both operands.
/// A layer has one matrix [out, in]. A stack has several of them, one after the other, in one weight.
class LinearSite {
 public:
  /// Saved by forward for backward; in Pass::forward_operands().
  struct Saved {
    Quantized x;        // transposed orientation, [in, T]
    Tensor of_adapter;  // Adapter::forward_stack() of a stack
  };

  /// How a pass quantizes x or dy.
  ops::QuantizeSpec spec(Operand of, const scaling::Pass& pass) const { return (of == Operand::gradient ? plan_.dy : plan_.x)->spec(pass); }
  /// Memory for the operands of x or dy, to be filled; then they are operands_of() it. Columns are in OperandRequest::region(), all else in
  /// scratch. Throws ContractError unless request.values has the layer's columns.
  ops::Sink operand(Stream&, const OperandRequest&, const scaling::Pass&) const;

  const std::string& path() const { return path_; }
  DType activations() const { return activations_; }
  /// Of one matrix.
  std::int64_t in() const { return weight_.parameter().shape[1]; }
  std::int64_t out() const { return weight_.parameter().shape[0] / matrices_; }
  std::int64_t matrices() const { return matrices_; }
  /// Matrices that one token uses.
  std::int64_t used() const { return used_; }
  Weight& weight() { return weight_; }
  /// Whether values of the tensor are read beside its codes: by backward those of dy, and columns of x before the weight's product; by
  /// forward those of x, which are then its operand.
  bool reads_values(const OperandRequest& r) const {
    return r.tensor == Operand::gradient ? reads_gradients_ : r.rows && plan_.forward_values;
  }
  bool is_adapted() const { return adapter_->reads_operands(); }
  /// From now on the layer adds this one's product, and its weight does not train. Before parameters get their memory.
  void adapt(std::unique_ptr<Adapter>);

 protected:
  /// `weight` [matrices * out, in], which may belong to somebody else, who visits it. `site` is completed with path and shape.
  LinearSite(const std::string& path, Parameter& weight, scaling::Precision&, const scaling::Site& site);
  /// The site owns its weight.
  LinearSite(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision&, const scaling::Site& site);

  /// An operator that reads values of dy makes forward's sinks store them.
  void read_gradients() { reads_gradients_ = true; }
  /// The gradient's product: multiply(queue, target) stores or adds to it. Work of the pass, or with `later` left there.
  template <class Multiply>
  void add_weight_product(Stream& stream, DeferredWork* later, const Multiply& multiply) {
    if (!trains(weight_.parameter())) return;
    const auto product = [this, multiply](Stream& queue) {
      add_product(queue, weight_.parameter(), gradient_use_, [&](const Gradient::Target& dw) { multiply(queue, dw); });
    };
    if (later != nullptr) later->add(product);
    else product(stream);
  }
  void visit_weight(Visitor& visitor) {
    if (owned_) visitor.parameter(*owned_);
  }
  void visit_site(Visitor& visitor) { visitor.weight(weight_), visitor.linear(*this), adapter_->visit(visitor); }

  const scaling::LinearPlan& plan() const { return plan_; }
  Adapter& adapter() { return *adapter_; }

 private:
  bool reads_columns() const;
  static ops::Sink beside_values(Stream&, const ops::QuantizeSpec&, ops::SinkRequest);

  std::string path_;
  std::unique_ptr<Parameter> owned_;
  GradientUse gradient_use_;
  DType activations_;
  std::int64_t matrices_, used_;
  bool reads_gradients_ = false;
  bool lends_x_;              // other layers read the columns of x that this one keeps
  scaling::LinearPlan plan_;  // its quantizer of the weight is moved on
  Weight weight_;
  std::unique_ptr<Adapter> adapter_ = std::make_unique<Adapter>();
};

}  // namespace octet::nn
