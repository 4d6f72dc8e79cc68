#pragma once

#include <memory>

#include "octet/nn/operand_request.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/nn/weight.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// A dense layer whose three GEMMs run in the precision that its plan says.
///
///   forward    y [T, out]   = x [T, in] W^T + b
///   backward   dx [T, in]   = dy [T, out] W
///              dW [out, in] += dy^T x          (=, where nn::Parameters begins a step with stale gradients)
///              db [out]     += sum over T of dy
///
/// T counts tokens, batch * sequence. x and dy come as GEMM operands, in the sinks of operand(): an op fills them as it produces the
/// tensor, or they are made of a tensor that is there (nn/operands.hpp). Of x, only the operand of dW is kept from forward, in the layer's
/// precision. Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
class Linear {
 public:
  struct Config {
    std::int64_t in, out;
    bool bias = false;
    Init init = {};
    Cut cut = {}, bias_cut = {};  // of weight and bias, where they are parts of larger ones
  };

  /// Saved by forward for backward; in Pass::forward_operands().
  struct Saved {
    Quantized x;  // transposed orientation, [in, T]
  };

  /// The layer owns its weight. `site` is completed with path and shape.
  Linear(const std::string& path, const Config&, scaling::Precision&, const scaling::Site& site = {});
  /// The layer multiplies by a weight [out, in] that somebody else owns and visits (tied embeddings).
  Linear(const std::string& path, Parameter& weight, scaling::Precision&, const scaling::Site& site = {});

  /// How a pass quantizes x or dy.
  ops::QuantizeSpec spec(Operand of, const scaling::Pass& pass) const { return (of == Operand::gradient ? plan_.dy : plan_.x)->spec(pass); }
  /// Memory for the operands of x or dy, to be filled. Columns are in OperandRequest::region(), all else in scratch. Throws ContractError
  /// unless request.values has the layer's columns.
  ops::Sink operand(Stream&, const OperandRequest&, const scaling::Pass&) const;

  /// y: [T, out], overwritten. saved = nullptr when no backward follows. Throws ContractError unless x has `in` columns.
  void forward(Stream&, const QTensor& x, const Tensor& y, const scaling::Pass&, Saved* saved);
  /// Both parts of it, in their order.
  void backward(Stream&, const ops::Sink& dy, const Saved&, const Tensor& dx, DeferredWork* later = nullptr);
  /// dx: [T, in], overwritten; empty if it is not needed. Adds to the bias's gradient.
  void backward_input(Stream&, const ops::Sink& dy, const Tensor& dx);
  /// Adds to the weight's gradient; with `later`, which is that of the pass, when this work is run. The head's backward takes chunks of
  /// tokens: its owner completes the gradient (Gradient::done).
  void backward_weight(Stream&, const ops::Sink& dy, const Saved&, DeferredWork* later);

  void visit(Visitor&);

  const std::string& path() const { return path_; }
  DType activations() const { return activations_; }
  std::int64_t in() const { return weight_.parameter().shape[1]; }
  std::int64_t out() const { return weight_.parameter().shape[0]; }
  Weight& weight() { return weight_; }

 private:
  Linear(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision&, const scaling::Site&);
  void add_product(Stream&, const Quantized& dy, const Quantized& x);

  std::string path_;
  std::unique_ptr<Parameter> owned_, bias_;
  GradientUse gradient_use_;
  DType activations_;
  scaling::LinearPlan plan_;  // its quantizer of the weight is moved on
  Weight weight_;
};

}  // namespace octet::nn
