#include "octet/nn/weight_gradient.hpp"

#include <algorithm>

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"

namespace octet::nn {
namespace {

// Copies of a model draw independently, so that the errors of their sum average out.
std::uint64_t key_of_draws(const Parameter& p) { return hash_of(p.path.c_str()) ^ std::uint64_t(p.gradient.copy()) * 0x9E3779B97F4A7C15u; }

}  // namespace

void add_codes(Stream& stream, Parameter& p, const Tensor& dw) {
  if (p.gradient.coded())
    ops::accumulate(stream, {.x = dw, .sum = p.gradient.stored(), .draws = p.gradient.draws(), .key = key_of_draws(p)});
}

ProductSum::ProductSum(Stream& stream, Parameter& p, bool again) : parameter_(p) {
  if (!trains(p)) return;
  if (!again) target_ = p.gradient.target(stream, GradientUse::product);
  else if (!p.gradient.coded()) target_ = {p.gradient.stored().values(), true};
  else target_ = {stream.empty(p.shape, Gradient::scratch_type(stream), Lifetime::scratch, Category::workspace), true};
}

void ProductSum::finish(Stream& stream) {
  if (trains(parameter_)) add_codes(stream, parameter_, target_.data);
}

RoundProducts::RoundProducts(Stream& stream, std::vector<Parameter*> parameters, bool again) : parameters_(std::move(parameters)) {
  for (Parameter* p : parameters_) sums_.emplace_back(stream, *p, again);
}

void RoundProducts::add(Stream&, Parameter& p, const Multiply& multiply) {
  const auto at = std::ranges::find(parameters_, &p);
  check(at != parameters_.end(), "gradient of {}: its rounds have no sum", p.path);
  sums_[std::size_t(at - parameters_.begin())].add(multiply);
}

void RoundProducts::finish(Stream& stream) {
  for (std::size_t i = sums_.size(); i-- > 0;) sums_[i].finish(stream);
}

Tensor sum_target(Stream& stream, Parameter& p) {
  if (trains(p)) return p.gradient.target(stream, GradientUse::sum).data;
  return stream.empty(p.shape, DType::f32, Lifetime::scratch, Category::workspace);
}

void sum_done(Stream& stream, Parameter& p, int pass) {
  if (trains(p)) p.gradient.done(stream, pass);
}

}  // namespace octet::nn
