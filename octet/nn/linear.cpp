#include "octet/nn/linear.hpp"

namespace octet::nn {

Linear::Linear(const std::string& path, Parameter& weight, scaling::Precision& precision, const scaling::Site& site)
    : LinearSite(path, weight, precision, site) {}

Linear::Linear(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site)
    : LinearSite(path,
                 std::make_unique<Parameter>(path + ".weight", Shape{c.out, c.in}, c.init,
                                             site.router ? ParameterRole::router : ParameterRole::matrix, c.cut),
                 precision, site),
      bias_share_(c.bias_share) {
  weight().parameter().matrices = c.matrices;
  if (!c.bias) return;
  read_gradients();
  bias_ = std::make_unique<Parameter>(path + ".bias", Shape{c.out}, Init{Init::Kind::zeros}, ParameterRole::vector, c.bias_cut);
  bias_->gradient.add_use(GradientUse::sum);
}

Tensor Linear::bias_of_sum() const { return bias_ && bias_share_.member == 0 ? bias_->value.values() : Tensor{}; }

void Linear::check_forward(const QTensor& x, const Tensor& y) const {
  check(x.rows.cols() == in(), "linear {}: x must be [T, {}], got {}", path(), in(), x.rows.codes.shape);
  check(y.shape == Shape{x.rows.rows(), out()}, "linear {}: y must be [{}, {}], got {}", path(), x.rows.rows(), out(), y.shape);
}

void Linear::forward(Stream& stream, const QTensor& x, const Tensor& y, const scaling::Pass& pass, Saved* saved) {
  forward_by(stream, x, y, pass, [&](const ops::Gemm& g) {
    ops::gemm(stream, g);
    adapter().forward(stream, x.rows, y, pass);
  });
  if (saved != nullptr) saved->x = x.cols;
  stream.observe(path(), "y", y);
}

void Linear::backward(Stream& stream, const ops::Sink& dy, const Saved& saved, const Tensor& dx, DeferredWork* later) {
  backward_input(stream, dy, saved, dx);
  backward_weight(stream, dy, saved, later);
  if (dx) stream.observe(path(), "dx", dx);
}

void Linear::backward_input(Stream& stream, const ops::Sink& dy, const Saved& saved, const Tensor& dx) {
  if (dx) {
    const Scope scope(stream);
    ops::gemm(stream, {.a = dy.codes.rows, .b = weight().operand(stream, Weight::Side::cols), .d = dx});
  }
  adapter().backward(stream, dy.plain, saved.x, dx);
  if (!bias_ || !trains(*bias_)) return;
  const std::int64_t rows = dy.plain.shape[0] / bias_share_.members;
  ops::add_column_sums(stream, dy.plain.rows(bias_share_.member * rows, rows), sum_target(stream, *bias_));
}

void Linear::backward_weight(Stream& stream, const ops::Sink& dy, const Saved& saved, DeferredWork* later) {
  add_weight_product(stream, later, [dy = dy.codes.cols, x = saved.x](Stream& queue, const Gradient::Target& dw) {
    ops::gemm(queue, {.a = dy, .b = x, .d = dw.data, .accumulate = dw.accumulate});
  });
  if (bias_) sum_done(stream, *bias_);
}

void Linear::visit(Visitor& visitor) {
  visit_weight(visitor);
  if (bias_) visitor.parameter(*bias_);
  visit_site(visitor);
}

}  // namespace octet::nn
