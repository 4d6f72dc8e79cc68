#include "octet/nn/parameters.hpp"

namespace octet::nn {

void Parameters::bind(Stream& stream, bool gradients) {
  constexpr std::int64_t step = Arena::alignment / sizeof(float);
  std::int64_t padded = 0;
  for (const Parameter* p : list_) padded += round_up(p->shape.count(), step), count_ += p->shape.count();
  values_ = stream.zeros({padded}, DType::f32, Lifetime::run, Category::weights);
  if (gradients) gradients_ = stream.zeros({padded}, DType::f32, Lifetime::run, Category::gradients);
  std::int64_t at = 0;
  for (Parameter* p : list_) {
    const std::int64_t n = p->shape.count();
    p->value = values_.rows(at, n).reshaped(p->shape);
    if (gradients) p->grad = gradients_.rows(at, n).reshaped(p->shape);
    at += round_up(n, step);
  }
}

void Parameters::initialize(Stream& stream, std::uint64_t seed) {
  for (Parameter* p : list_) octet::initialize(stream, *p, seed);
}

}  // namespace octet::nn
