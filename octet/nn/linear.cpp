#include "octet/nn/linear.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/gemm/gemm.hpp"

namespace octet::nn {
namespace {

scaling::Site completed(scaling::Site site, const std::string& path, const Parameter& weight) {
  site.path = path, site.out = weight.shape[0], site.in = weight.shape[1];
  return site;
}

// Copies of a model draw independently, so that the errors of their sum average out.
std::uint64_t key_of_draws(const Parameter& p) { return hash_of(p.path.c_str()) ^ std::uint64_t(p.gradient.copy()) * 0x9E3779B97F4A7C15u; }

}  // namespace

Linear::Linear(const std::string& path, Parameter& weight, scaling::Precision& precision, const scaling::Site& site)
    : path_(path),
      gradient_use_(site.head ? GradientUse::products : GradientUse::product),
      activations_(precision.activations()),
      plan_(precision.plan(completed(site, path, weight))),
      weight_(weight, std::move(plan_.w), plan_.caches_weight) {
  weight.gradient.add_use(gradient_use_);
}

Linear::Linear(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision& precision, const scaling::Site& site)
    : Linear(path, *owned, precision, site) {
  owned_ = std::move(owned);
}

Linear::Linear(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site)
    : Linear(path, std::make_unique<Parameter>(path + ".weight", Shape{c.out, c.in}, c.init, ParameterRole::matrix, c.cut), precision,
             site) {
  if (!c.bias) return;
  bias_ = std::make_unique<Parameter>(path + ".bias", Shape{c.out}, Init{Init::Kind::zeros}, ParameterRole::vector, c.bias_cut);
  bias_->gradient.add_use(GradientUse::sum);
}

ops::Sink Linear::operand(Stream& stream, const OperandRequest& request, const scaling::Pass& pass) const {
  const bool gradient = request.tensor == Operand::gradient;
  const Shape shape{request.count(), gradient ? out() : in()};
  const ops::QuantizeSpec as = spec(request.tensor, pass);
  Tensor plain = request.values;
  check(!plain || plain.shape == shape, "linear {}: {} must be [T, {}], got {}", path_, name(request.tensor), shape[1], plain.shape);
  // A bias reads values at once, so they do not wait for the weight's product.
  if (gradient && bias_ && as.quantizes() && !plain) plain = stream.empty(shape, activations_, Lifetime::scratch, Category::activations);
  return ops::make_sink(stream, as,
                        {.shape = shape,
                         .dtype = plain ? plain.dtype : activations_,
                         .rows = request.rows,
                         .cols = request.cols,
                         .cols_region = request.region(pass),
                         .plain = plain,
                         .for_gemm = true,
                         .cols_left = gradient});
}

void Linear::forward(Stream& stream, const QTensor& x, const Tensor& y, const scaling::Pass& pass, Saved* saved) {
  check(x.rows.cols() == in(), "linear {}: x must be [T, {}], got {}", path_, in(), x.rows.codes.shape);
  check(y.shape == Shape{x.rows.rows(), out()}, "linear {}: y must be [{}, {}], got {}", path_, x.rows.rows(), out(), y.shape);
  weight_.refresh(stream, pass);
  const Scope scope(stream);
  ops::gemm(stream, {.a = x.rows,
                     .b = weight_.operand(stream, Weight::Side::rows),
                     .d = y,
                     .bias = bias_ ? bias_->value.values() : Tensor{},
                     .fast_accumulation = plan_.fast_forward});
  if (saved != nullptr) saved->x = x.cols;
  stream.observe(path_, "y", y);
}

void Linear::backward(Stream& stream, const ops::Sink& dy, const Saved& saved, const Tensor& dx, DeferredWork* later) {
  backward_input(stream, dy, dx);
  backward_weight(stream, dy, saved, later);
  if (dx) stream.observe(path_, "dx", dx);
}

void Linear::backward_input(Stream& stream, const ops::Sink& dy, const Tensor& dx) {
  if (dx) {
    const Scope scope(stream);
    ops::gemm(stream, {.a = dy.codes.rows, .b = weight_.operand(stream, Weight::Side::cols), .d = dx});
  }
  if (bias_) ops::add_column_sums(stream, dy.plain, bias_->gradient.target(stream, GradientUse::sum).data);
}

void Linear::backward_weight(Stream& stream, const ops::Sink& dy, const Saved& saved, DeferredWork* later) {
  const auto product = [this, dy = dy.codes.cols, x = saved.x](Stream& queue) {
    add_product(queue, dy, x);
    if (gradient_use_ == GradientUse::product) weight_.parameter().gradient.done(queue);
  };
  if (later != nullptr) later->add(product);
  else product(stream);
  if (bias_) bias_->gradient.done(stream);
}

// dW (+)= dy^T x. 8-bit gradients: the product is stored in scratch, then added.
void Linear::add_product(Stream& stream, const Quantized& dy, const Quantized& x) {
  Parameter& weight = weight_.parameter();
  const Scope scope(stream);
  const auto [dw, accumulate] = weight.gradient.target(stream, gradient_use_);
  ops::gemm(stream, {.a = dy, .b = x, .d = dw, .accumulate = accumulate});
  if (weight.gradient.coded())
    ops::accumulate(stream, {.x = dw, .sum = weight.gradient.stored(), .draws = weight.gradient.draws(), .key = key_of_draws(weight)});
}

void Linear::visit(Visitor& visitor) {
  if (owned_) visitor.parameter(*owned_);
  if (bias_) visitor.parameter(*bias_);
  visitor.weight(weight_), visitor.linear(*this);
}

}  // namespace octet::nn
