#include "octet/nn/frozen_parameters.hpp"

#include <algorithm>
#include <span>

#include "octet/nn/parameters.hpp"
#include "octet/nn/weight.hpp"

namespace octet::nn {

// A tied embedding has two uses, and its values are read.
void FrozenParameters::bind(Stream& stream, Collect collect) {
  list_ = std::move(collect.list), held_.assign(list_.size(), nullptr);
  for (Weight* w : collect.weights) {
    const auto at = std::ranges::find(list_, &w->parameter());
    if (at != list_.end() && w->parameter().gradient.uses() == 1) held_[std::size_t(at - list_.begin())] = w;
  }
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (held_[i] == nullptr)
      list_[i]->value = Stored::plain(stream.zeros(list_[i]->shape, type_of(*list_[i]), Lifetime::run, Category::weights));
}

std::int64_t FrozenParameters::count() const {
  std::int64_t n = 0;
  for (const Parameter* p : list_) n += p->shape.count();
  return n;
}

template <class Fill>
void FrozenParameters::fill(Stream& stream, std::size_t i, const Fill& fill_slice) {
  Parameter& p = *list_[i];
  if (held_[i] == nullptr) return fill_slice(ParameterSlice{.parameter = &p, .value = p.value});
  const Scope scope(stream);
  const Tensor values = stream.empty(p.shape, type_of(p), Lifetime::scratch, Category::workspace);
  fill_slice(ParameterSlice{.parameter = &p, .value = Stored::plain(values)});
  held_[i]->hold(stream, values);
}

void FrozenParameters::set_values(Stream& stream, std::size_t i, const float* host) {
  const std::span values(host, std::size_t(list_[i]->shape.count()));
  checksum_.add(std::as_bytes(values));
  for (const float v : values) squares_ += double(v) * v;
  fill(stream, i, [&](const ParameterSlice& slice) { nn::set_values(stream, slice, host); });
}

void FrozenParameters::visit_state(StateVisitor& visitor) {
  if (list_.empty()) return;
  const auto own = std::int64_t(checksum_.sum().low);
  std::int64_t stored = own;
  visitor.state("checksum", stored);
  if (stored != own)
    throw ConfigError(
        "the adapters of this checkpoint were trained over other frozen weights than those of model.init; restore that folder");
}

void FrozenParameters::initialize(Stream& stream, std::uint64_t seed) {
  for (std::size_t i = 0; i < list_.size(); ++i) fill(stream, i, [&](const ParameterSlice& slice) { nn::initialize(stream, slice, seed); });
}

}  // namespace octet::nn
