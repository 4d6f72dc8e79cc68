#include "octet/nn/linear_site.hpp"

namespace octet::nn {
namespace {

scaling::Site completed(scaling::Site site, const std::string& path, const Parameter& weight) {
  site.path = path, site.out = weight.shape[0], site.in = weight.shape[1];
  return site;
}

}  // namespace

LinearSite::LinearSite(const std::string& path, Parameter& weight, scaling::Precision& precision, const scaling::Site& site)
    : path_(path),
      gradient_use_(site.head ? GradientUse::products : GradientUse::product),
      activations_(precision.activations()),
      matrices_(site.matrices),
      used_(site.used),
      lends_x_(site.router),
      plan_(precision.plan(completed(site, path, weight))),
      weight_(weight, std::move(plan_.w), plan_.caches_weight,
              plan_.forward_values ? Weight::Forward::values : Weight::Forward::quantized) {
  weight.gradient.add_use(gradient_use_);
}

LinearSite::LinearSite(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision& precision, const scaling::Site& site)
    : LinearSite(path, *owned, precision, site) {
  owned_ = std::move(owned);
}

ops::Sink LinearSite::operand(Stream& stream, const OperandRequest& request, const scaling::Pass& pass) const {
  const bool gradient = request.tensor == Operand::gradient;
  const Shape shape{request.count(), gradient ? out() : in()};
  // An operand of columns alone is made for a product that is asked for.
  const bool cols = request.cols && (!request.rows || (gradient ? trains(weight_.parameter()) : reads_columns()));
  const ops::QuantizeSpec as = spec(request.tensor, pass);
  ops::SinkRequest want{.shape = shape,
                        .dtype = request.values ? request.values.dtype : activations_,
                        .rows = request.rows,
                        .cols = cols,
                        .cols_region = request.region(pass),
                        .plain = request.values,
                        .for_gemm = true,
                        .cols_left = gradient};
  check(!want.plain || want.plain.shape == shape, "linear {}: {} must be [T, {}], got {}", path_, name(request.tensor), shape[1],
        want.plain.shape);
  if (!as.quantizes() || !reads_values(request)) return ops::make_sink(stream, as, want);
  // A bias and forward read values at once, so they do not wait for the weight's product.
  if (!want.plain) want.plain = stream.empty(shape, activations_, Lifetime::scratch, Category::activations);
  return gradient ? ops::make_sink(stream, as, want) : beside_values(stream, as, want);
}

// Codes of columns alone. Those that backward makes again are made here, too, if the quantizer measures them.
ops::Sink LinearSite::beside_values(Stream& stream, const ops::QuantizeSpec& as, ops::SinkRequest want) {
  const bool measures = as.amax || as.health != nullptr;
  if (!want.cols && !measures) return ops::make_sink(stream, {.format = want.dtype}, want);
  if (!want.cols) want.cols_region = Lifetime::scratch;
  want.rows = false, want.cols = true;
  return ops::make_sink(stream, as, want);
}

void LinearSite::adapt(std::unique_ptr<Adapter> adapter) {
  adapter_ = std::move(adapter);
  if (adapter_->reads_operands()) read_gradients();
}

// Whether backward reads columns of x: for its weight's gradient, its adapter, or for another layer that gathers its rows.
bool LinearSite::reads_columns() const { return trains(weight_.parameter()) || adapter_->reads_operands() || lends_x_; }

}  // namespace octet::nn
