#pragma once

#include "octet/nn/linear_site.hpp"
#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::nn {

/// Linear layers of equal shapes, of which each multiplies its own group of rows:
///
///   forward    y [rows of e, out] = x [rows of e, in] W_e^T
///   backward   dx [rows of e, in] = dy [rows of e, out] W_e;   dW_e [out, in] += dy^T x over the rows of e
///
/// The matrices are one weight [matrices * out, in] with one site in the plan: one row, a quantizer per operand. Operands have all R rows.
/// Where a matrix has one scale, each of the stack has its own; x and dy have one for all rows.
/// Those without a token may be anything in rows of x and dy, and are zeros in columns.
class StackedLinear : public LinearSite {
 public:
  struct Config {
    std::int64_t in, out, matrices;
    std::int64_t used = 1;                   // matrices that one token uses
    std::int64_t all = matrices, first = 0;  // matrices of all ranks, and which of them is the first here
    Init init = {};
    std::int64_t joined = 1;  // matrices whose rows one of these joins, such as gate and up
    Cut cut = {};             // of a member's part of the stack; empty: all of it
  };
  StackedLinear(const std::string& path, const Config&, scaling::Precision&, scaling::Site);

  /// x: rows of [R, in]; y: [R, out]. saved: gets the adapter's; nullptr when no backward follows.
  void forward(Stream&, const QTensor& x, const ops::RowGroups&, const Tensor& y, const scaling::Pass&, Saved* saved);
  /// The part of it that backward reads: saved->of_adapter.
  void save(Stream&, const QTensor& x, const ops::RowGroups&, const scaling::Pass&, Saved& saved);
  /// dx: [R, in], overwritten.
  void backward_input(Stream&, const ops::Sink& dy, const ops::RowGroups&, const Tensor& dx);
  /// Adds to the weight's gradient; with `later`, when this work is run: then x, dy and the groups live until then.
  void backward_weight(Stream&, const ops::Sink& dy, const Saved&, const ops::RowGroups&, DeferredWork* later);
  /// The same of a round, now.
  void backward_weight(Stream&, const ops::Sink& dy, const Saved&, const ops::RowGroups&, RoundProducts&);
  /// Adds to the adapter's gradients, and its part to dx.
  void backward_adapter(Stream& stream, const ops::Sink& dy, const Saved& saved, const ops::RowGroups& groups, const Tensor& dx,
                        GradientProducts& products) {
    adapter().backward_stack(stream, dy.plain, saved.x, saved.of_adapter, groups, dx, products);
  }
  /// Its weight and those of its adapter.
  std::vector<Parameter*> parameters();

  void visit(Visitor& visitor) {
    visitor.experts(weight().parameter());
    visit_weight(visitor), visit_site(visitor);
  }
};

}  // namespace octet::nn
