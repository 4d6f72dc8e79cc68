#include "octet/nn/weight_scales.hpp"

#include <algorithm>

#include "octet/nn/divided.hpp"
#include "octet/ops/quantize/slice.hpp"

namespace octet::nn {

void WeightScales::bind(Stream& stream, const std::vector<Linear*>& layers) {
  std::vector<Linear*> bound;
  for (Linear* l : layers)
    if (!l->weight().codes && finds_scale_together(partition_, l->weight_spec(scaling::recomputing))) bound.push_back(l);
  if (bound.empty()) return;
  const auto zeros = [&](std::int64_t n) { return stream.zeros({n}, DType::f32, Lifetime::run, Category::weight_operands); };
  scales_ = zeros(std::int64_t(bound.size()));
  for (Linear* l : bound) {
    const std::int64_t i = std::int64_t(weights_.size());
    weights_.push_back({&l->weight(), l->weight_spec(scaling::recomputing), scales_.rows(i, 1), zeros(1)});
    l->share_weight_scale({this, weights_.back().scale, weights_.back().descale});
  }
}

void WeightScales::find(Stream& stream) {
  if (std::ranges::all_of(weights_, [](const Weight& w) { return w.version == w.parameter->version; })) return;
  for (Weight& w : weights_) {
    const Stored& value = w.parameter->value;
    ops::slice_maxima(stream, {value, w.parameter->shape, 0}, w.spec.rows, w.scale);
    w.version = w.parameter->version;
  }
  partition_.max(stream, scales_);
  for (const Weight& w : weights_) ops::scales_of_maxima(stream, w.spec, w.parameter->value.value_type(), w.scale, w.scale, w.descale);
}

}  // namespace octet::nn
