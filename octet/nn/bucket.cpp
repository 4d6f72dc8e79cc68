#include "octet/nn/bucket.hpp"

#include <algorithm>
#include <numeric>

#include "octet/tensor/stored_memory.hpp"

namespace octet::nn {
namespace {

// Codes of one byte then begin on 256 bytes, as other allocations do.
constexpr std::int64_t alignment = 256;

// Those of equal groups and storages are in one bucket.
struct Group {
  enum class Kind : std::uint8_t { vectors, block, alone } kind;
  const void* alone = nullptr;
  int block = -1;
  bool coded = false, copied = false, experts = false;
  Storage values, gradients, copies;
  friend bool operator==(const Group&, const Group&) = default;
};

Group group_of(const Parameter& p, const ParameterContext& context, const ParameterStorage& storage, const Shards& shards) {
  const bool experts = context.experts && shards.differ();
  Group g{.kind = Group::Kind::block,
          .block = context.block,
          .coded = context.coded != nullptr && (experts ? shards.experts : shards.all).shards(Sharded::masters),
          .copied = false,
          .experts = experts,
          .values = p.value_storage(storage.values),
          .gradients = p.gradient_storage(storage.gradients, storage.ends),
          .copies = p.value_storage(storage.copies)};
  if (p.role == ParameterRole::vector) g.kind = Group::Kind::vectors, g.block = -1, g.copied = p.cut && p.cut.alone == 0;
  else if (context.block < 0) g.kind = Group::Kind::alone, g.alone = &p;
  return g;
}

}  // namespace

std::vector<Bucket> make_buckets(std::span<Parameter* const> list, std::span<const ParameterContext> contexts,
                                 const ParameterStorage& storage, const Shards& shards) {
  std::vector<Bucket> buckets;
  std::vector<Group> groups;
  for (std::size_t i = list.size(); i-- > 0;) {
    Parameter& p = *list[i];
    const Group group = group_of(p, contexts[i], storage, shards);
    const auto at = std::size_t(std::find(groups.begin(), groups.end(), group) - groups.begin());
    if (at == groups.size())
      groups.push_back(group), buckets.push_back({.values = group.values, .gradients = group.gradients, .copies = group.copies});
    Bucket& b = buckets[at];
    b.block = group.block, b.experts = group.experts, b.shard = group.experts ? shards.experts : shards.all;
    b.parameters.push_back(&p), b.first.push_back(b.count);
    if (group.coded) b.coded.push_back(contexts[i].coded);
    b.count += round_up(p.shape.count(), alignment);
  }
  for (Bucket& b : buckets) b.count = round_up(b.count, std::lcm(alignment, storage_block * b.shard.count));
  return buckets;
}

IndexRange Shard::own_masters(std::int64_t elements) const {
  const int of = shards(Sharded::masters) ? count : 1;
  return {elements / of * (index % of), elements / of};
}

ParameterSlice slice_of(const Bucket& b, std::size_t i) {
  Parameter& p = *b.parameters[i];
  if (!b.shard.shards(Sharded::masters)) return whole_slice(p);
  const IndexRange own = b.shard.own_masters(b.count);
  const std::int64_t begin = b.first[i], end = begin + p.shape.count();
  const std::int64_t from = std::clamp(own.first, begin, end), to = std::clamp(own.first + own.count, begin, end);
  const std::int64_t n = to - from, at = n > 0 ? from - own.first : 0;
  ParameterSlice out{.parameter = &p, .first = from - begin, .value = b.master.part(at, n), .gradient = b.sums.part(at, n)};
  if (scales_tensor(b.values)) out.value.scales = b.master.scales.rows(std::int64_t(i), 1).reshaped({2});
  if (scales_tensor(b.gradients)) out.gradient.scales = p.gradient.stored().scales;
  return out;
}

Stored Bucket::cut(const Stored& variable, std::size_t parameter) const {
  const Shape& shape = parameters[parameter]->shape;
  return reshaped(variable.part(first[parameter], shape.count()), shape);
}

}  // namespace octet::nn
