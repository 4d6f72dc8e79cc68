#include "octet/nn/norm.hpp"

#include <utility>

#include "octet/nn/weight_gradient.hpp"
#include "octet/ops/add/add.hpp"
#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"

namespace octet::nn {
namespace {

constexpr Init ones{Init::Kind::ones}, zero{Init::Kind::zeros};

Tensor statistic(Stream& stream, const Tensor& x, Region region) {
  return stream.empty({x.shape[0]}, DType::f32, region, Category::activations);
}

template <class Input>
Input with_branch(Stream& stream, Input x, Region region) {
  x.branch = stream.empty(x.x.shape, x.x.dtype, region, Category::activations);
  return x;
}

// Whether the sum waits.
template <class Input>
bool leave_waiting(const Tensor& a, const Tensor& b, Input& sum) {
  if (!sum.branch) return false;
  check(a.data == sum.x.data && b.data == sum.branch.data && !sum.waits, "norm: only its own branch can wait to be added to the input");
  sum.waits = true, sum.known = false;
  return true;
}

// The branch that forward() adds.
template <class Input>
Tensor taken_branch(Input& x) {
  return std::exchange(x.waits, false) ? x.branch : Tensor{};
}

}  // namespace

RmsNorm::RmsNorm(const std::string& path, std::int64_t width, const NormConfig& c, Partition& p)
    : RmsNorm(path, width, c, own_copy(p, {width})) {}

RmsNorm::RmsNorm(const std::string& path, std::int64_t width, const NormConfig& c, Cut cut)
    : weight(path + ".weight", {width}, c.offset == 0 ? ones : zero, ParameterRole::vector, std::move(cut)),
      eps_(float(c.eps)),
      offset_(c.offset) {
  check(c.offset == 0 || c.offset == 1, "{}: a norm's offset is 0 or 1, got {}", path, c.offset);
  weight.gradient.add_use(GradientUse::sum);
}

RmsNorm::Input RmsNorm::input(Stream& stream, const Tensor& x, Region region) { return {x, statistic(stream, x, region)}; }

RmsNorm::Input RmsNorm::waiting_input(Stream& stream, const Tensor& x, Region region) {
  return with_branch(stream, input(stream, x, region), region);
}

void RmsNorm::add(Stream& stream, const Tensor& a, const Tensor& b, Input& sum) const {
  if (leave_waiting(a, b, sum)) return;
  ops::rmsnorm_add(stream, {.a = a, .b = b, .sum = sum.x, .inv_rms = sum.inv_rms, .eps = eps_});
  sum.known = true;
}

void RmsNorm::complete(Stream& stream, Input& x) const {
  if (const Tensor branch = taken_branch(x))
    ops::rmsnorm_add(stream, {.a = x.x, .b = branch, .sum = x.x, .inv_rms = x.inv_rms, .eps = eps_}), x.known = true;
}

void RmsNorm::forward(Stream& stream, Input& x, ops::Sink& y) const {
  ops::rmsnorm_forward(stream, {.x = x.x,
                                .w = weight.value.values(),
                                .y = y,
                                .inv_rms = x.inv_rms,
                                .eps = eps_,
                                .known = x.known,
                                .offset = offset_,
                                .added = taken_branch(x)});
  x.known = true;
  stream.observe(weight.path, row_factor, x.inv_rms);
}

void RmsNorm::backward(Stream& stream, const Tensor& dy, const Input& x, const Tensor& dx, bool accumulate, const Tensor& mean) {
  ops::rmsnorm_backward(stream, {.dy = dy,
                                 .x = x.x,
                                 .w = weight.value.values(),
                                 .inv_rms = x.inv_rms,
                                 .dx = dx,
                                 .dw = sum_target(stream, weight),
                                 .accumulate = accumulate,
                                 .offset = offset_,
                                 .mean = mean});
  sum_done(stream, weight);
  stream.observe(weight.path, "dx", dx);
}

LayerNorm::LayerNorm(const std::string& path, std::int64_t width, const NormConfig& c, Partition& p)
    : weight(path + ".weight", {width}, ones, ParameterRole::vector, own_copy(p, {width})),
      bias(path + ".bias", {width}, zero, ParameterRole::vector, own_copy(p, {width})),
      eps_(float(c.eps)) {
  check(c.offset == 0, "{}: LayerNorm has no offset", path);
  for (Parameter* p : {&weight, &bias}) p->gradient.add_use(GradientUse::sum);
}

LayerNorm::Input LayerNorm::input(Stream& stream, const Tensor& x, Region region) {
  return {x, statistic(stream, x, region), statistic(stream, x, region)};
}

LayerNorm::Input LayerNorm::waiting_input(Stream& stream, const Tensor& x, Region region) {
  return with_branch(stream, input(stream, x, region), region);
}

void LayerNorm::add(Stream& stream, const Tensor& a, const Tensor& b, Input& sum) const {
  if (leave_waiting(a, b, sum)) return;
  ops::layernorm_add(stream, {.a = a, .b = b, .sum = sum.x, .mean = sum.mean, .inv_std = sum.inv_std, .eps = eps_});
  sum.known = true;
}

void LayerNorm::complete(Stream& stream, Input& x) const {
  if (const Tensor branch = taken_branch(x))
    ops::layernorm_add(stream, {.a = x.x, .b = branch, .sum = x.x, .mean = x.mean, .inv_std = x.inv_std, .eps = eps_}), x.known = true;
}

void LayerNorm::forward(Stream& stream, Input& x, ops::Sink& y) const {
  ops::layernorm_forward(stream, {.x = x.x,
                                  .w = weight.value.values(),
                                  .b = bias.value.values(),
                                  .y = y,
                                  .mean = x.mean,
                                  .inv_std = x.inv_std,
                                  .eps = eps_,
                                  .known = x.known,
                                  .added = taken_branch(x)});
  x.known = true;
  stream.observe(weight.path, row_factor, x.inv_std);
}

void LayerNorm::backward(Stream& stream, const Tensor& dy, const Input& x, const Tensor& dx, bool accumulate) {
  ops::layernorm_backward(stream, {.dy = dy,
                                   .x = x.x,
                                   .w = weight.value.values(),
                                   .mean = x.mean,
                                   .inv_std = x.inv_std,
                                   .dx = dx,
                                   .dw = sum_target(stream, weight),
                                   .db = sum_target(stream, bias),
                                   .accumulate = accumulate});
  for (Parameter* p : {&weight, &bias}) sum_done(stream, *p);
  stream.observe(weight.path, "dx", dx);
}

void NoNorm::add(Stream& stream, const Tensor& a, const Tensor& b, Input& sum) const {
  ops::add(stream, a, b, sum.x);
  sum.known = false;
}

// Values beside codes, which forward may read, are no work of quantize().
void NoNorm::forward(Stream& stream, Input& x, ops::Sink& y) const {
  if (y.spec.quantizes() && y.plain) copy(stream, x.x, y.plain);
  ops::quantize(stream, x.x, y);
}

void NoNorm::backward(Stream& stream, const Tensor& dy, const Input&, const Tensor& dx, bool accumulate) {
  if (accumulate) ops::add(stream, dx, dy, dx);
  else copy(stream, dy, dx);
}

}  // namespace octet::nn
