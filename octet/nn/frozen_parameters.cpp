#include "octet/nn/frozen_parameters.hpp"

#include <algorithm>
#include <cmath>

#include "octet/nn/parameters.hpp"
#include "octet/nn/partition.hpp"
#include "octet/nn/weight.hpp"

namespace octet::nn {
namespace {

// Of the whole parameter, as every member begins with its part of them.
std::vector<float> first_values(const Parameter& p, std::uint64_t seed) {
  Stream host(Device::cpu);
  Parameter whole(p.path, p.whole(), p.init, p.role);
  std::vector<float> out(std::size_t(p.whole().count()));
  whole.value = Stored::plain({out.data(), p.whole(), DType::f32});
  initialize(host, whole, seed);
  return out;
}

}  // namespace

// A tied embedding has two uses, and its values are read.
void FrozenParameters::bind(Stream& stream, Collect collect, const Shards& shards) {
  list_ = std::move(collect.list), held_.assign(list_.size(), nullptr);
  for (Weight* w : collect.weights) {
    const auto at = std::ranges::find(list_, &w->parameter());
    if (at != list_.end() && w->parameter().gradient.uses() == 1) held_[std::size_t(at - list_.begin())] = w;
  }
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (held_[i] == nullptr)
      list_[i]->value = Stored::plain(stream.zeros(list_[i]->shape, type_of(*list_[i]), Lifetime::run, Category::weights));
  if (shards.all.shards(Sharded::weights)) divide(stream, collect.contexts, shards);
}

// One bucket per block, and one for its stacks where ranks have parts of them.
void FrozenParameters::divide(Stream& stream, const std::vector<ParameterContext>& contexts, const Shards& shards) {
  int blocks = 0;
  for (const ParameterContext& p : contexts) blocks = std::max(blocks, p.block + 1);
  for (int block = 0; block < blocks; ++block)
    for (const bool experts : {false, true}) {
      std::vector<FrozenBucket::Member> members;
      for (std::size_t i = 0; i < list_.size(); ++i)
        if (held_[i] != nullptr && contexts[i].block == block && (contexts[i].experts && shards.differ()) == experts)
          members.push_back({held_[i], type_of(*list_[i])});
      if (!members.empty()) buckets_.emplace_back(stream, block, experts, experts ? shards.experts : shards.all, members);
    }
}

std::int64_t FrozenParameters::count() const {
  std::int64_t n = 0;
  for (const Parameter* p : list_) n += p->shape.count();
  return n;
}

bool FrozenParameters::holds_part(std::size_t i) const { return held_[i] != nullptr && held_[i]->holds_by_largest(); }

// In the type in which it is quantized; f32 [1].
Tensor FrozenParameters::largest_of(Stream& stream, std::size_t i, std::span<const float> whole) const {
  if (!holds_part(i)) return {};
  float largest = 0;
  for (const float v : whole) largest = std::max(largest, std::abs(type_of(*list_[i]) == DType::bf16 ? to_float(to_bf16(v)) : v));
  const Tensor out = stream.empty({1}, DType::f32);
  upload(stream, &largest, out);
  return out;
}

template <class Fill>
void FrozenParameters::fill(Stream& stream, std::size_t i, const Tensor& largest, const Fill& fill_slice) {
  Parameter& p = *list_[i];
  if (held_[i] == nullptr) return fill_slice(ParameterSlice{.parameter = &p, .value = p.value});
  const Scope scope(stream);
  const Tensor values = stream.empty(p.shape, type_of(p), Lifetime::scratch, Category::workspace);
  fill_slice(ParameterSlice{.parameter = &p, .value = Stored::plain(values)});
  held_[i]->hold(stream, values, largest);
  for (FrozenBucket& b : buckets_)
    if (b.has(*held_[i])) b.keep(stream, *held_[i]);
}

void FrozenParameters::note(std::span<const float> whole) {
  checksum_.add(std::as_bytes(whole));
  for (const float v : whole) squares_ += double(v) * v;
}

void FrozenParameters::set_values(Stream& stream, std::size_t i, std::span<const float> whole) {
  const Parameter& p = *list_[i];
  check(std::int64_t(whole.size()) == p.whole().count(), "frozen parameter {}: has {} values, got {}", p.path, p.whole().count(),
        whole.size());
  const Scope scope(stream);
  const Tensor largest = largest_of(stream, i, whole);
  const std::vector<float> part = p.cut ? part_of(p.cut, whole) : std::vector<float>();
  fill(stream, i, largest, [&](const ParameterSlice& slice) { nn::set_values(stream, slice, p.cut ? part.data() : whole.data()); });
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

// A scale of all values follows from those of other members, too.
void FrozenParameters::initialize(Stream& stream, std::uint64_t seed) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const Scope scope(stream);
    const bool on_host = holds_part(i) && stream.device() != Device::null;
    const std::vector<float> whole = on_host ? first_values(*list_[i], seed) : std::vector<float>();
    const Tensor largest = on_host ? largest_of(stream, i, whole) : holds_part(i) ? stream.empty({1}, DType::f32) : Tensor{};
    fill(stream, i, largest, [&](const ParameterSlice& slice) { nn::initialize(stream, slice, seed); });
  }
}

}  // namespace octet::nn
