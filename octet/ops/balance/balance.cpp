#include "octet/ops/balance/balance.hpp"

#include "octet/ops/balance/balance.kernels.hpp"
#include "octet/ops/balance/balance.math.hpp"

namespace octet::ops {
namespace {

void check_matrix(const Tensor& t, const char* name, const Shape& shape) {
  check(t.dtype == DType::f32 && t.shape.rank == 2 && t.shape == shape, "balance: {} must be f32 {}, got {} {}", name, shape, t.dtype,
        t.shape);
}
void check_scalar(const Tensor& t, const char* name) {
  check(t.dtype == DType::f32 && t.shape == Shape{1}, "balance: {} must be f32 [1], got {} {}", name, t.dtype, t.shape);
}

}  // namespace

void balance_gradient(Stream& stream, const BalanceGradient& a) {
  check_matrix(a.counts, "counts", a.counts.shape), check_matrix(a.dscores, "dscores", a.counts.shape);
  if (a.scale) check_scalar(a.scale, "scale");
  stream.count({.ops = 1, .bytes = 2.0 * double(a.counts.bytes())});
  if (stream.device() == Device::cpu) {
    const float factor = a.scale ? a.factor * *a.scale.f32() : a.factor;
    for (std::int64_t i = 0; i < a.counts.count(); ++i) a.dscores.f32()[i] = factor * a.counts.f32()[i];
  }
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(balance_gradient, stream.queue(), a);
}

void balance_bias(Stream& stream, const BalanceBias& a) {
  check_matrix(a.counts, "counts", a.counts.shape), check_matrix(a.bias, "bias", a.counts.shape), check_scalar(a.skip, "skip");
  stream.count({.ops = 1, .bytes = 3.0 * double(a.counts.bytes())});
  const std::int64_t E = a.counts.shape[1];
  if (stream.device() == Device::cpu && *a.skip.f32() == 0)
    for (std::int64_t l = 0; l < a.counts.shape[0]; ++l) balance_bias_layer(E, a.counts.f32() + l * E, a.rate, a.bias.f32() + l * E);
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(balance_bias, stream.queue(), a);
}

}  // namespace octet::ops
