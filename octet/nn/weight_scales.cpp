#include "octet/nn/weight_scales.hpp"

#include <algorithm>

namespace octet::nn {

void WeightScales::bind(Stream& stream, const std::vector<Weight*>& all) {
  std::vector<Weight*> bound;
  for (Weight* w : all)
    if (w->parameter().value && w->parameter().cut && finds_scale_together(partition_, w->spec(scaling::recomputing))) bound.push_back(w);
  if (bound.empty()) return;
  const auto zeros = [&](std::int64_t n) { return stream.zeros({n}, DType::f32, Lifetime::run, Category::weight_operands); };
  scales_ = zeros(std::int64_t(bound.size())), versions_.resize(bound.size());
  for (Weight* w : bound) {
    const Parameter& p = w->parameter();
    const Tensor scale = scales_.rows(std::int64_t(parts_.size()), 1), descale = zeros(1);
    parameters_.push_back(&p), parts_.push_back({{p.value, p.shape, 0}, w->spec(scaling::recomputing), scale, descale});
    w->share_scale(scale, descale, [this](Stream& s) { find(s); });
  }
}

void WeightScales::find(Stream& stream) {
  if (std::ranges::equal(parameters_, versions_, {}, &Parameter::version)) return;
  find_scales(stream, parts_, [&] { partition_.max(stream, scales_); });
  std::ranges::transform(parameters_, versions_.begin(), &Parameter::version);
}

}  // namespace octet::nn
