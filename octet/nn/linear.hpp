#pragma once

#include "octet/nn/linear_site.hpp"
#include "octet/ops/gemm/gemm.hpp"

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
class Linear : public LinearSite {
 public:
  /// How members of a partition share the bias of partial sums, of which each has a copy: the first one adds it, and each adds the
  /// gradients of its own rows.
  struct BiasShare {
    int member = 0, members = 1;
  };
  struct Config {
    std::int64_t in, out;
    bool bias = false;
    Init init = {};
    Cut cut = {}, bias_cut = {};  // of weight and bias, where they are parts of larger ones
    BiasShare bias_share = {};
    std::int64_t matrices = 1;  // Parameter::matrices of the weight
  };

  /// The layer owns its weight. `site` is completed with path and shape.
  Linear(const std::string& path, const Config&, scaling::Precision&, const scaling::Site& site = {});
  /// The layer multiplies by a weight [out, in] that somebody else owns and visits (tied embeddings).
  Linear(const std::string& path, Parameter& weight, scaling::Precision&, const scaling::Site& site = {});

  /// y: [T, out], overwritten. saved = nullptr when no backward follows. Throws ContractError unless x has `in` columns.
  void forward(Stream&, const QTensor& x, const Tensor& y, const scaling::Pass&, Saved* saved);
  /// forward() without a backward, by an op that multiplies and continues with the product: run(gemm). Then y is memory, undefined
  /// afterwards. Nothing is added to the product, so the layer must not be adapted.
  template <class Run>
  void forward_by(Stream& stream, const QTensor& x, const Tensor& y, const scaling::Pass& pass, const Run& run) {
    check_forward(x, y);
    weight().refresh(stream, pass);
    const Scope scope(stream);
    run(ops::Gemm{.a = x.rows,
                  .b = weight().operand(stream, Weight::Side::rows),
                  .d = y,
                  .bias = bias_of_sum(),
                  .fast_accumulation = plan().fast_forward});
  }
  /// Both parts of it, in their order.
  void backward(Stream&, const ops::Sink& dy, const Saved&, const Tensor& dx, DeferredWork* later = nullptr);
  /// dx: [T, in], overwritten; empty if it is not needed. Adds to the gradients of bias and adapter.
  void backward_input(Stream&, const ops::Sink& dy, const Saved&, const Tensor& dx);
  /// Adds to the weight's gradient; with `later`, which is that of the pass, when this work is run. The head's backward takes chunks of
  /// tokens: its owner completes the gradient (Gradient::done).
  void backward_weight(Stream&, const ops::Sink& dy, const Saved&, DeferredWork* later);

  void visit(Visitor&);

 private:
  void check_forward(const QTensor& x, const Tensor& y) const;
  Tensor bias_of_sum() const;

  std::unique_ptr<Parameter> bias_;
  BiasShare bias_share_;
};

}  // namespace octet::nn
