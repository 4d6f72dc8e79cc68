#include "octet/ops/common_scale/common_scale.hpp"

#include "octet/ops/common_scale/common_scale.kernels.hpp"

namespace octet::ops {

void tensor_maxima(Stream& stream, std::span<const Tensor> x, const Tensor& amax) {
  const std::int64_t n = std::int64_t(x.size());
  check(amax.dtype == DType::f32 && amax.shape == Shape{n}, "tensor_maxima: amax must be f32 [{}], got {} {}", n, amax.dtype, amax.shape);
  double bytes = 0;
  for (const Tensor& t : x) {
    check(t.dtype == DType::f32 || t.dtype == DType::bf16, "tensor_maxima: wants f32 or bf16, got {} {}", t.dtype, t.shape);
    bytes += double(t.bytes());
  }
  stream.count({.ops = 1, .bytes = bytes});
  clear(stream, amax);
  for (std::int64_t i = 0; i < n; ++i) OCTET_LAUNCH(stream, tensor_maximum, x[std::size_t(i)], amax.rows(i, 1));
}

void common_scales(Stream& stream, const Tensor& amax, const Tensor& mu, const Tensor& scales) {
  const std::int64_t n = amax.count();
  check(
      amax.dtype == DType::f32 && mu.dtype == DType::f32 && mu.count() == n && scales.dtype == DType::f32 && scales.shape == (Shape{n, 2}),
      "common_scales: wants f32 amax [{}], mu [{}] and scales [{}, 2], got {}, {} and {}", n, n, n, amax.shape, mu.shape, scales.shape);
  stream.count({.ops = 1, .bytes = 16.0 * double(n)});
  OCTET_LAUNCH(stream, common_scales, amax, mu, scales);
}

void advance_mu(Stream& stream, const AdvanceMu& a) {
  const std::int64_t n = a.mu.count();
  check(a.mu.dtype == DType::f32 && a.counts.dtype == DType::i64 && a.counts.shape == (Shape{n, 2}) && a.limits.dtype == DType::i64 &&
            a.limits.count() == n,
        "advance_mu: wants mu f32 [{}], counts i64 [{}, 2] and limits i64 [{}], got {} {}, {} {} and {} {}", n, n, n, a.mu.dtype,
        a.mu.shape, a.counts.dtype, a.counts.shape, a.limits.dtype, a.limits.shape);
  stream.count({.ops = 1, .bytes = 32.0 * double(n)});
  OCTET_LAUNCH(stream, advance_mu, a);
}

}  // namespace octet::ops
