#pragma once

#include <memory>

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
/// T counts tokens, batch * sequence. x and dy come as GEMM operands: a producer fills the sink that the layer offers (input_sink,
/// gradient_sink), or the layer quantizes a tensor itself (quantize_input, quantize_gradient). Of x, only backward's operand is
/// kept from forward, in the layer's precision. Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
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

  /// Where a producer of x [tokens, in] puts it. `keep`: backward will follow, so its operand is made too.
  ops::Sink input_sink(Stream&, std::int64_t tokens, const scaling::Pass&, bool keep) const;
  /// Where a producer of x puts it once more, for backward alone: forward ran without `keep`.
  ops::Sink rebuilt_sink(Stream&, std::int64_t tokens, const scaling::Pass&) const;
  /// The sink whose plain values are x already, for the orientations that are wanted; and that of dy in both.
  ops::Sink input_sink_of(Stream&, const Tensor& x, const scaling::Pass&, bool rows, bool cols) const;
  ops::Sink gradient_sink_of(Stream&, const Tensor& dy, const scaling::Pass&) const;
  /// x as operands; where the layer is not quantized, views of x, which must live as long as they are used: that of backward in
  /// Pass::forward_operands().
  QTensor quantize_input(Stream&, const Tensor& x, const scaling::Pass&, bool keep) const;
  /// Backward's operand of x alone, once more: forward ran without `keep`. Not quantized, it is a view of x.
  Quantized rebuild_input(Stream&, const Tensor& x, const scaling::Pass&) const;
  /// y: [T, out], overwritten. saved = nullptr when no backward follows. Throws ContractError unless x has `in` columns.
  void forward(Stream&, const QTensor& x, const Tensor& y, const scaling::Pass&, Saved* saved);

  /// Where a dy must live that is not quantized, so that operands are views of it.
  Region gradient_region(const scaling::Pass& pass) const {
    return gradient_spec(pass).quantizes() ? Region(Lifetime::scratch) : pass.backward_operands();
  }
  /// Where a producer of dy [tokens, out] puts it: `in_place`, which it may overwrite, where nothing is quantized.
  ops::Sink gradient_sink(Stream&, std::int64_t tokens, const scaling::Pass&, const Tensor& in_place = {}) const;
  ops::Sink quantize_gradient(Stream&, const Tensor& dy, const scaling::Pass&) const;
  /// dx: [T, in], overwritten; empty if it is not needed. Adds to the gradients of weight and bias; with `later`, which is that of the
  /// pass, to the weight's when this work is run.
  void backward(Stream&, const ops::Sink& dy, const Saved&, const Tensor& dx, DeferredWork* later = nullptr);
  /// Its two parts, in this order: dx and the bias's gradient, then the weight's.
  void backward_input(Stream&, const ops::Sink& dy, const Tensor& dx);
  void backward_weight(Stream&, const ops::Sink& dy, const Saved&, DeferredWork* later);
  /// The same by chunks of tokens: one part per chunk, then backward_done() once.
  void backward_part(Stream&, const ops::Sink& dy, const Saved&, const Tensor& dx);
  void backward_done(Stream&);

  /// How a pass quantizes x and dy.
  ops::QuantizeSpec input_spec(const scaling::Pass& pass) const { return plan_.x->spec(pass); }
  ops::QuantizeSpec gradient_spec(const scaling::Pass& pass) const { return plan_.dy->spec(pass); }
  void visit(Visitor&);

  /// Whether its GEMMs read 8-bit codes.
  bool quantizes(const scaling::Pass& pass) const { return plan_.x->spec(pass).quantizes(); }
  bool has_bias() const { return bias_ != nullptr; }
  const std::string& path() const { return path_; }
  DType activations() const { return activations_; }
  std::int64_t in() const { return weight_.parameter().shape[1]; }
  std::int64_t out() const { return weight_.parameter().shape[0]; }
  Weight& weight() { return weight_; }

 private:
  Linear(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision&, const scaling::Site&);
  ops::Sink sink_of_input(Stream&, const Tensor& x, std::int64_t tokens, const scaling::Pass&, bool rows, bool cols) const;
  ops::Sink sink_of_gradient(Stream&, std::int64_t tokens, DType, const Tensor& plain, const scaling::Pass&) const;
  void add_product(Stream&, const Quantized& dy, const Quantized& x);

  std::string path_;
  std::unique_ptr<Parameter> owned_, bias_;
  GradientUse gradient_use_;
  DType activations_;
  scaling::LinearPlan plan_;  // its quantizer of the weight is moved on
  Weight weight_;
};

}  // namespace octet::nn
