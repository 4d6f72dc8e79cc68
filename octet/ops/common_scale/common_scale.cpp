#include "octet/ops/common_scale/common_scale.hpp"

#include <cmath>
#include <vector>

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
  const std::int64_t n = std::int64_t(a.values.size());
  check(a.mu.dtype == DType::f32 && a.mu.shape == Shape{n} && a.counts.dtype == DType::i64 && a.counts.shape == (Shape{n, 2}),
        "advance_mu: wants mu f32 [{}] and counts i64 [{}, 2], got {} {} and {} {}", n, n, a.mu.dtype, a.mu.shape, a.counts.dtype,
        a.counts.shape);
  check(a.most_share >= 0 && a.most_share < 1, "advance_mu: the share {} must be in [0, 1)", a.most_share);
  stream.count({.ops = 1, .bytes = 24.0 * double(n)});
  const Scope scope(stream);
  const Tensor limits = stream.empty({n}, DType::i64, Lifetime::scratch, Category::workspace);
  std::vector<std::int64_t> most;
  for (const std::int64_t values : a.values) most.push_back(std::int64_t(std::floor(a.most_share * double(values))));
  upload(stream, most.data(), limits);
  OCTET_LAUNCH(stream, advance_mu, ops::MuStep{a.mu, a.counts, limits, a.growth});
}

}  // namespace octet::ops
