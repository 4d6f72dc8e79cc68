#include "octet/ops/cross_entropy/cross_entropy.kernels.hpp"

namespace octet::ops {

void cross_entropy(Stream& stream, const CrossEntropy& a) {
  check(a.logits.shape.rank == 2 && a.vocabulary > 0 && a.vocabulary <= a.logits.shape[1],
        "cross_entropy: logits must be [T, at least {}], got {}", a.vocabulary, a.logits.shape);
  check(is_activation(a.logits.dtype), "cross_entropy: logits must be f32, bf16 or f16, got {}", a.logits.dtype);
  const Shape tokens{a.logits.shape[0]};
  check(a.targets.shape == tokens && a.targets.dtype == DType::i32 && a.losses.shape == tokens && a.losses.dtype == DType::f32,
        "cross_entropy: targets must be i32 {} and losses f32 {}, got {} {} and {} {}", tokens, tokens, a.targets.dtype, a.targets.shape,
        a.losses.dtype, a.losses.shape);
  check(a.loss_sum.shape == Shape{1} && a.loss_sum.dtype == DType::f64 && a.counted.shape == Shape{1} && a.counted.dtype == DType::i64,
        "cross_entropy: loss_sum must be f64 [1] and counted i64 [1], got {} {} and {} {}", a.loss_sum.dtype, a.loss_sum.shape,
        a.counted.dtype, a.counted.shape);
  check(!a.loss_scale || (a.loss_scale.shape == Shape{1} && a.loss_scale.dtype == DType::f32),
        "cross_entropy: loss_scale must be f32 [1], got {} {}", a.loss_scale.dtype, a.loss_scale.shape);
  check(!a.weights || (a.weights.shape == tokens && a.weights.dtype == DType::f32), "cross_entropy: weights must be f32 {}, got {} {}",
        tokens, a.weights.dtype, a.weights.shape);
  check(!a.parts || (a.parts.dtype == DType::f32 && a.parts.shape.rank == 2 && a.parts.shape[1] == 3 && tokens[0] > 0 &&
                     a.parts.shape[0] % tokens[0] == 0),
        "cross_entropy: parts must be f32 [owners x {}, 3], got {} {}", tokens[0], a.parts.dtype, a.parts.shape);
  check(a.parts || a.first == 0, "cross_entropy: columns from token {} on need the statistics of all owners", a.first);
  stream.count({.ops = 1, .bytes = (a.gradient ? 2.0 : 1.0) * double(a.logits.bytes())});
  OCTET_LAUNCH(stream, cross_entropy, a);
}

void logit_statistics(Stream& stream, const LogitStatistics& a) {
  check(a.logits.shape.rank == 2 && a.vocabulary > 0 && a.vocabulary <= a.logits.shape[1] && is_activation(a.logits.dtype),
        "logit_statistics: logits must be f32, bf16 or f16 [T, at least {}], got {} {}", a.vocabulary, a.logits.dtype, a.logits.shape);
  const std::int64_t tokens = a.logits.shape[0];
  check(a.targets.shape == Shape{tokens} && a.targets.dtype == DType::i32 && a.statistics.shape == Shape{tokens, 3} &&
            a.statistics.dtype == DType::f32,
        "logit_statistics: targets must be i32 [{}] and statistics f32 [{}, 3], got {} {} and {} {}", tokens, tokens, a.targets.dtype,
        a.targets.shape, a.statistics.dtype, a.statistics.shape);
  stream.count({.ops = 1, .bytes = double(a.logits.bytes())});
  OCTET_LAUNCH(stream, logit_statistics, a);
}

void mean_loss(Stream& stream, const Tensor& sum, const Tensor& counted, const Tensor& mean) {
  check(sum.dtype == DType::f64 && counted.dtype == DType::i64 && mean.dtype == DType::f32,
        "mean_loss: wants f64 / i64 to f32, got {} / {} to {}", sum.dtype, counted.dtype, mean.dtype);
  stream.count({.ops = 1, .bytes = 20});
  if (stream.device() == Device::cpu) *mean.f32() = float(*sum.as<double>() / double(*counted.as<std::int64_t>()));
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(mean_loss, stream.queue(), sum.as<double>(), counted.as<std::int64_t>(), mean.f32());
}

}  // namespace octet::ops
