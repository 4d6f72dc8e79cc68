#include "octet/nn/router_biases.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"

namespace octet::nn {

RouterBiases::RouterBiases(Stream& stream, const Routers& routers, const std::vector<std::int64_t>& layers)
    : stream_(stream), routers_(routers) {
  if (!routers.config().biased) return;
  const std::int64_t experts = routers.config().experts;
  const bool here = bool(routers.biases()) && stream.device() != Device::null;
  values_.assign(std::size_t(here ? std::int64_t(layers.size()) * experts : 0), 0.0f);
  if (here) get_values(stream, routers.biases(), values_.data());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    parameters_.push_back(std::make_unique<Parameter>(format("layers.{}.mlp.router.bias", layers[i]), Shape{experts},
                                                      Init{Init::Kind::zeros}, ParameterRole::vector));
    if (here) parameters_.back()->value = Stored::plain({&values_[i * std::size_t(experts)], {experts}, DType::f32});
  }
}

std::vector<Parameter*> RouterBiases::behind(std::vector<Parameter*> parameters) const {
  for (const auto& p : parameters_) parameters.push_back(p.get());
  return parameters;
}

std::string RouterBiases::nonfinite() const {
  for (const auto& p : parameters_) {
    const float* const x = p->value.values().f32();
    if (!std::all_of(x, x + p->shape.count(), [](float v) { return std::isfinite(v); })) return p->path;
  }
  return "";
}

void RouterBiases::commit() {
  if (!values_.empty()) set_values(stream_, routers_.biases(), values_.data());
}

}  // namespace octet::nn
