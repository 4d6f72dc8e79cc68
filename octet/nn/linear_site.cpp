#include "octet/nn/linear_site.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"

namespace octet::nn {
namespace {

scaling::Site completed(scaling::Site site, const std::string& path, const Parameter& weight) {
  site.path = path, site.out = weight.shape[0], site.in = weight.shape[1];
  return site;
}

// Copies of a model draw independently, so that the errors of their sum average out.
std::uint64_t key_of_draws(const Parameter& p) { return hash_of(p.path.c_str()) ^ std::uint64_t(p.gradient.copy()) * 0x9E3779B97F4A7C15u; }

}  // namespace

LinearSite::LinearSite(const std::string& path, Parameter& weight, scaling::Precision& precision, const scaling::Site& site)
    : path_(path),
      gradient_use_(site.head ? GradientUse::products : GradientUse::product),
      activations_(precision.activations()),
      matrices_(site.matrices),
      used_(site.used),
      plan_(precision.plan(completed(site, path, weight))),
      weight_(weight, std::move(plan_.w), plan_.caches_weight) {
  weight.gradient.add_use(gradient_use_);
}

LinearSite::LinearSite(const std::string& path, std::unique_ptr<Parameter> owned, scaling::Precision& precision, const scaling::Site& site)
    : LinearSite(path, *owned, precision, site) {
  owned_ = std::move(owned);
}

ops::Sink LinearSite::operand(Stream& stream, const OperandRequest& request, const scaling::Pass& pass) const {
  const bool gradient = request.tensor == Operand::gradient;
  const Shape shape{request.count(), gradient ? out() : in()};
  const ops::QuantizeSpec as = spec(request.tensor, pass);
  Tensor plain = request.values;
  check(!plain || plain.shape == shape, "linear {}: {} must be [T, {}], got {}", path_, name(request.tensor), shape[1], plain.shape);
  // A bias reads values at once, so they do not wait for the weight's product.
  if (gradient && reads_gradients_ && as.quantizes() && !plain)
    plain = stream.empty(shape, activations_, Lifetime::scratch, Category::activations);
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

// 8-bit gradients: the product is in scratch, and is added.
void LinearSite::add_codes(Stream& stream, const Tensor& dw) {
  const Parameter& weight = weight_.parameter();
  if (weight.gradient.coded())
    ops::accumulate(stream, {.x = dw, .sum = weight.gradient.stored(), .draws = weight.gradient.draws(), .key = key_of_draws(weight)});
}

}  // namespace octet::nn
