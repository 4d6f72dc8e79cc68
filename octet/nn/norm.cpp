#include "octet/nn/norm.hpp"

#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"

namespace octet::nn {
namespace {

constexpr Init ones{Init::Kind::ones}, zero{Init::Kind::zeros};

// One statistic a token, kept when backward follows.
Tensor statistic(Stream& stream, std::int64_t tokens, const Pass& pass, bool keep) {
  return keep ? stream.empty({tokens}, DType::f32, pass.keep, Category::activations) : stream.empty({tokens}, DType::f32);
}

}  // namespace

RmsNorm::RmsNorm(const std::string& path, std::int64_t width, double eps) : weight(path + ".weight", {width}, ones, false), eps_(float(eps)) {}

void RmsNorm::forward(Stream& stream, const Tensor& x, ops::Sink& y, const Pass& pass, Saved* saved) {
  const Tensor inv_rms = statistic(stream, x.shape[0], pass, saved != nullptr);
  ops::rmsnorm_forward(stream, {.x = x, .w = weight.value, .y = y, .inv_rms = inv_rms, .eps = eps_});
  if (saved != nullptr) *saved = {x, inv_rms};
}

void RmsNorm::backward(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dx, bool accumulate) {
  ops::rmsnorm_backward(stream, {.dy = dy, .x = saved.x, .w = weight.value, .inv_rms = saved.inv_rms, .dx = dx, .dw = weight.grad, .accumulate = accumulate});
  stream.observe(weight.path, "dx", dx);
}

LayerNorm::LayerNorm(const std::string& path, std::int64_t width, double eps)
    : weight(path + ".weight", {width}, ones, false), bias(path + ".bias", {width}, zero, false), eps_(float(eps)) {}

void LayerNorm::forward(Stream& stream, const Tensor& x, ops::Sink& y, const Pass& pass, Saved* saved) {
  const Tensor mean = statistic(stream, x.shape[0], pass, saved != nullptr), inv_std = statistic(stream, x.shape[0], pass, saved != nullptr);
  ops::layernorm_forward(stream, {.x = x, .w = weight.value, .b = bias.value, .y = y, .mean = mean, .inv_std = inv_std, .eps = eps_});
  if (saved != nullptr) *saved = {x, mean, inv_std};
}

void LayerNorm::backward(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dx, bool accumulate) {
  ops::layernorm_backward(stream, {.dy = dy, .x = saved.x, .w = weight.value, .mean = saved.mean, .inv_std = saved.inv_std, .dx = dx, .dw = weight.grad,
                                   .db = bias.grad, .accumulate = accumulate});
  stream.observe(weight.path, "dx", dx);
}

ops::Sink plain_sink(Stream& stream, Shape shape, DType dtype, const Pass& pass, bool keep) {
  ops::QuantizeSpec none;
  none.format = dtype;
  return ops::make_sink(stream, none, {.shape = shape, .dtype = dtype, .cols_region = keep ? pass.keep : Region(Lifetime::scratch),
                                       .category = keep ? Category::activations : Category::temporaries});
}

}  // namespace octet::nn
