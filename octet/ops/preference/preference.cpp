#include "octet/ops/preference/preference.kernels.hpp"
#include "octet/ops/preference/preference.math.hpp"

namespace octet::ops {

void preference(Stream& stream, const Preference& a) {
  const Shape tokens{a.losses.shape[0]};
  const std::int64_t pairs = a.places.shape[0];
  const auto is = [](const Tensor& t, const Shape& shape, DType dtype) { return t.shape == shape && t.dtype == dtype; };
  check(is(a.losses, tokens, DType::f32) && is(a.weights, tokens, DType::f32),
        "preference: losses and weights must be f32 {}, got {} {} and {} {}", tokens, a.losses.dtype, a.losses.shape, a.weights.dtype,
        a.weights.shape);
  check(is(a.places, {pairs, 4}, DType::i32) && is(a.references, {pairs, 2}, DType::f64),
        "preference: places must be i32 [P, 4] and references f64 [P, 2], got {} {} and {} {}", a.places.dtype, a.places.shape,
        a.references.dtype, a.references.shape);
  check(is(a.loss_sum, {1}, DType::f64) && is(a.counted, {1}, DType::i64) && is(a.sums, {preference_sums}, DType::f64),
        "preference: loss_sum must be f64 [1], counted i64 [1] and sums f64 [{}], got {} {}, {} {} and {} {}", int(preference_sums),
        a.loss_sum.dtype, a.loss_sum.shape, a.counted.dtype, a.counted.shape, a.sums.dtype, a.sums.shape);
  check(!a.log_probabilities || is(a.log_probabilities, {pairs, 2}, DType::f64),
        "preference: log_probabilities must be f64 [{}, 2], got {} {}", pairs, a.log_probabilities.dtype, a.log_probabilities.shape);
  const Scope scope(stream);
  const Tensor results = stream.empty({pairs, PairResult::entries}, DType::f64);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.losses.bytes())});
  OCTET_LAUNCH(stream, preference, a, results);
}

}  // namespace octet::ops
