#include <algorithm>
#include <vector>

#include "octet/ops/stored/cpu/group.hpp"
#include "octet/ops/stored/stored.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t piece_groups = 32;

/// body(group) for all groups of `count` values, several per job.
template <class Body>
void for_each_group(std::int64_t count, const Body& body) {
  const std::int64_t groups = ops::groups_of(count);
  for_each(ceil_div(groups, piece_groups), piece_groups * storage_block * 8, [&](std::int64_t piece) {
    for (std::int64_t g = piece * piece_groups; g < std::min(groups, (piece + 1) * piece_groups); ++g) body(g);
  });
}

float maximum_of(const ops::StoredView& values) {
  std::vector<float> maxima(std::size_t(ops::groups_of(values.count)));
  for_each_group(values.count, [&](std::int64_t group) {
    GroupLane::Group x;
    ops::load_group(GroupLane{}, values, group, x);
    maxima[std::size_t(group)] = ops::group_amax(GroupLane{}, x);
  });
  float most = 0;
  for (const float m : maxima) most = larger(m, most);
  return most;
}

}  // namespace

void decode_stored(const Stored& s, const Tensor& values) {
  const ops::StoredView from = ops::view_of(s), to = ops::view_of(Stored::plain(values));
  for_each_group(from.count, [&](std::int64_t group) {
    GroupLane::Group x;
    ops::load_group(GroupLane{}, from, group, x);
    ops::store_group(GroupLane{}, to, group, x, ops::Nearest{});
  });
}

void encode_stored(const ops::EncodeStored& a) {
  const ops::StoredView from = ops::view_of(Stored::plain(a.values));
  ops::StoredView to = ops::view_of(a.out, a.tiny);
  if (a.maximum) {
    const float most = maximum_of(from);
    to.next_descale = ops::tensor_descale_for(to.storage, most);
    a.out.scales.f32()[0] = to.next_descale;
    a.out.scales.f32()[1] = ops::stored_amax(to.storage, most, to.next_descale, false);
  }
  for_each_group(from.count, [&](std::int64_t group) {
    GroupLane::Group x;
    ops::load_group(GroupLane{}, from, group, x);
    ops::store_group(GroupLane{}, to, group, x, ops::Nearest{});
  });
}

}  // namespace octet::cpu::OCTET_ISA
