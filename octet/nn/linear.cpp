#include "octet/nn/linear.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"

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

// x: empty where a producer makes it, in the type of activations.
ops::Sink Linear::sink_of_input(Stream& stream, const Tensor& x, std::int64_t tokens, const scaling::Pass& pass, bool rows,
                                bool cols) const {
  return ops::make_sink(stream, plan_.x->spec(pass),
                        {.shape = {tokens, in()},
                         .dtype = x ? x.dtype : activations_,
                         .rows = rows,
                         .cols = cols,
                         .cols_region = cols ? pass.forward_operands() : Region(Lifetime::scratch),
                         .plain = x,
                         .for_gemm = true});
}

ops::Sink Linear::input_sink(Stream& stream, std::int64_t tokens, const scaling::Pass& pass, bool keep) const {
  return sink_of_input(stream, {}, tokens, pass, true, keep);
}

ops::Sink Linear::rebuilt_sink(Stream& stream, std::int64_t tokens, const scaling::Pass& pass) const {
  return sink_of_input(stream, {}, tokens, pass, false, true);
}

ops::Sink Linear::input_sink_of(Stream& stream, const Tensor& x, const scaling::Pass& pass, bool rows, bool cols) const {
  check(x.shape.rank == 2 && x.shape[1] == in(), "linear {}: x must be [T, {}], got {}", path_, in(), x.shape);
  return sink_of_input(stream, x, x.shape[0], pass, rows, cols);
}

QTensor Linear::quantize_input(Stream& stream, const Tensor& x, const scaling::Pass& pass, bool keep) const {
  ops::Sink sink = input_sink_of(stream, x, pass, true, keep);
  ops::quantize(stream, x, sink);
  return sink.codes;
}

Quantized Linear::rebuild_input(Stream& stream, const Tensor& x, const scaling::Pass& pass) const {
  ops::Sink sink = input_sink_of(stream, x, pass, false, true);
  ops::quantize(stream, x, sink);
  return sink.codes.cols;
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

ops::Sink Linear::sink_of_gradient(Stream& stream, std::int64_t tokens, DType dtype, const Tensor& plain, const scaling::Pass& pass) const {
  return ops::make_sink(stream, plan_.dy->spec(pass),
                        {.shape = {tokens, out()},
                         .dtype = dtype,
                         .cols = true,
                         .cols_region = pass.backward_operands(),
                         .plain = plain,
                         .for_gemm = true,
                         .cols_left = true});
}

ops::Sink Linear::gradient_sink(Stream& stream, std::int64_t tokens, const scaling::Pass& pass, const Tensor& in_place) const {
  Tensor plain = in_place;
  // A bias reads values at once, so they do not wait for the weight's product.
  if (gradient_spec(pass).quantizes())
    plain = bias_ ? stream.empty({tokens, out()}, activations_, Lifetime::scratch, Category::activations) : Tensor{};
  return sink_of_gradient(stream, tokens, activations_, plain, pass);
}

ops::Sink Linear::gradient_sink_of(Stream& stream, const Tensor& dy, const scaling::Pass& pass) const {
  check(dy.shape.rank == 2 && dy.shape[1] == out(), "linear {}: dy must be [T, {}], got {}", path_, out(), dy.shape);
  return sink_of_gradient(stream, dy.shape[0], dy.dtype, dy, pass);
}

ops::Sink Linear::quantize_gradient(Stream& stream, const Tensor& dy, const scaling::Pass& pass) const {
  ops::Sink sink = gradient_sink_of(stream, dy, pass);
  ops::quantize(stream, dy, sink);
  return sink;
}

void Linear::backward(Stream& stream, const ops::Sink& dy, const Saved& saved, const Tensor& dx, DeferredWork* later) {
  backward_input(stream, dy, dx);
  backward_weight(stream, dy, saved, later);
  if (dx) stream.observe(path_, "dx", dx);
}

void Linear::backward_weight(Stream& stream, const ops::Sink& dy, const Saved& saved, DeferredWork* later) {
  if (later == nullptr) {
    add_product(stream, dy.codes.cols, saved.x);
    return backward_done(stream);
  }
  if (bias_) bias_->gradient.done(stream);
  later->add([this, dy = dy.codes.cols, x = saved.x](Stream& queue) {
    add_product(queue, dy, x);
    weight_.parameter().gradient.done(queue);
  });
}

void Linear::backward_done(Stream& stream) {
  weight_.parameter().gradient.done(stream);
  if (bias_) bias_->gradient.done(stream);
}

void Linear::backward_part(Stream& stream, const ops::Sink& dy, const Saved& saved, const Tensor& dx) {
  backward_input(stream, dy, dx);
  add_product(stream, dy.codes.cols, saved.x);
  if (dx) stream.observe(path_, "dx", dx);
}

void Linear::backward_input(Stream& stream, const ops::Sink& dy, const Tensor& dx) {
  if (dx) {
    const Scope scope(stream);
    ops::gemm(stream, {.a = dy.codes.rows, .b = weight_.operand(stream, Weight::Side::cols), .d = dx});
  }
  if (bias_) ops::add_column_sums(stream, dy.plain, bias_->gradient.target(stream, GradientUse::sum).data);
}

// dW (+)= dy^T x. 8-bit gradients: the product is stored in scratch, then added.
void Linear::add_product(Stream& stream, const Quantized& dy, const Quantized& x) {
  Gradient& gradient = weight_.parameter().gradient;
  const Scope scope(stream);
  const auto [dw, accumulate] = gradient.target(stream, gradient_use_);
  ops::gemm(stream, {.a = dy, .b = x, .d = dw, .accumulate = accumulate});
  if (gradient.coded())
    ops::accumulate(stream, {.x = dw, .sum = gradient.stored(), .draws = gradient.draws(), .key = key_of_draws(weight_.parameter())});
}

void Linear::visit(Visitor& visitor) {
  if (owned_) visitor.parameter(*owned_);
  if (bias_) visitor.parameter(*bias_);
  visitor.linear(*this);
}

}  // namespace octet::nn
