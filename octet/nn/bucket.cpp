#include "octet/nn/bucket.hpp"

#include <algorithm>
#include <numeric>

namespace octet::nn {
namespace {

// Codes of one byte then begin on 256 bytes, as other allocations do.
constexpr std::int64_t alignment = 256;

// Those of equal groups and storages are in one bucket.
struct Group {
  enum class Kind : std::uint8_t { vectors, block, alone } kind;
  const void* alone = nullptr;
  int block = -1;
  bool coded = false, copied = false;
  Storage values, gradients, copies;
  friend bool operator==(const Group&, const Group&) = default;
};

Group group_of(const Parameter& p, const Place& place, const ParameterStorage& storage) {
  Group g{.kind = Group::Kind::block,
          .block = place.block,
          .coded = place.coded != nullptr,
          .copied = false,
          .values = p.value_storage(storage.values),
          .gradients = p.gradient_storage(storage.gradients),
          .copies = p.value_storage(storage.copies)};
  if (p.role == ParameterRole::vector) g.kind = Group::Kind::vectors, g.block = -1, g.copied = p.cut && p.cut.alone == 0;
  else if (place.block < 0) g.kind = Group::Kind::alone, g.alone = &p;
  return g;
}

}  // namespace

std::vector<Bucket> make_buckets(std::span<Parameter* const> list, std::span<const Place> places, const ParameterStorage& storage,
                                 int parts) {
  std::vector<Bucket> buckets;
  std::vector<Group> groups;
  for (std::size_t i = list.size(); i-- > 0;) {
    Parameter& p = *list[i];
    const Group group = group_of(p, places[i], storage);
    const auto at = std::size_t(std::find(groups.begin(), groups.end(), group) - groups.begin());
    if (at == groups.size())
      groups.push_back(group), buckets.push_back({.values = group.values, .gradients = group.gradients, .copies = group.copies});
    Bucket& b = buckets[at];
    b.block = group.block;
    b.parameters.push_back(&p), b.first.push_back(b.count);
    if (group.coded) b.coded.push_back(places[i].coded);
    b.count += round_up(p.shape.count(), alignment);
  }
  for (Bucket& b : buckets) b.count = round_up(b.count, std::lcm(alignment, storage_block * parts));
  return buckets;
}

ParameterSlice slice_of(const Bucket& b, std::size_t i, const Share& share) {
  Parameter& p = *b.parameters[i];
  const std::int64_t part = b.count / share.parts, part_begin = share.part * part, begin = b.first[i], end = begin + p.shape.count();
  const std::int64_t from = std::clamp(part_begin, begin, end), to = std::clamp(part_begin + part, begin, end);
  const auto cut = [&](const Stored& variable, std::int64_t at, const Tensor& scalars) {
    Stored out{.codes = variable.codes.rows(at, to - from), .scales = scalars, .storage = variable.storage};
    if (scales_blocks(variable.storage)) out.scales = variable.scales.rows(at / storage_block, ceil_div(to - from, storage_block));
    return out;
  };
  const Tensor none, &master = b.master.scales;
  const bool scaled = scales_tensor(b.values);
  return {.parameter = &p,
          .first = from - begin,
          .value = cut(b.master, to > from ? from - part_begin : 0, scaled ? master.rows(std::int64_t(i), 1).reshaped({2}) : none),
          .gradient = b.gradient_part ? cut(b.gradient_part, to > from ? from - part_begin : 0, none)
                                      : cut(b.gradient, from, scales_tensor(b.gradients) ? p.gradient.stored().scales : none)};
}

Stored Bucket::cut(const Stored& variable, std::size_t parameter) const {
  const Parameter& p = *parameters[parameter];
  const std::int64_t n = p.shape.count();
  Stored out{.codes = variable.codes.rows(first[parameter], n).reshaped(p.shape), .storage = variable.storage};
  if (scales_blocks(variable.storage)) out.scales = variable.scales.rows(first[parameter] / storage_block, ceil_div(n, storage_block));
  return out;
}

}  // namespace octet::nn
