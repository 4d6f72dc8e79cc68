#pragma once

// Only for *.cpu.cpp files: groups of values to codes, wherever the values come from.

#include <algorithm>
#include <vector>

#include "octet/ops/stored/cpu/group.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

/// body(group) for all groups of `count` values, several per job.
template <class Body>
void for_each_group(std::int64_t count, const Body& body) {
  constexpr std::int64_t piece_groups = 32;
  const std::int64_t groups = ops::groups_of(count);
  for_each(ceil_div(groups, piece_groups), piece_groups * storage_block * 8, [&](std::int64_t piece) {
    for (std::int64_t g = piece * piece_groups; g < std::min(groups, (piece + 1) * piece_groups); ++g) body(g);
  });
}

/// The largest magnitude of all values, of which make(group, x) gives a group, with 0 beyond the end.
template <class Make>
float maximum_of(std::int64_t count, const Make& make) {
  struct Maximum {
    float of_group = 0;
  };
  std::vector<Maximum> maxima(std::size_t(ops::groups_of(count)));
  for_each_group(count, [&](std::int64_t group) {
    GroupLane::Group x;
    make(group, x);
    maxima[std::size_t(group)].of_group = ops::group_amax(GroupLane{}, x);
  });
  float most = 0;
  for (const Maximum& m : maxima) most = larger(m.of_group, most);
  return most;
}

/// The nearest codes of the values. `most`: the largest magnitude of the whole tensor, for per-tensor scales.
template <class Make>
void encode_groups(const Stored& out, Tiny tiny, float most, const Make& make) {
  ops::StoredView to = ops::view_of(out, tiny);
  if (scales_tensor(out.storage)) {
    const float descale = ops::tensor_descale_for(to.storage, most);
    to.next_scale = ops::reciprocal_of_power(descale);
    out.scales.f32()[0] = descale, out.scales.f32()[1] = ops::stored_amax(to.storage, most, descale, false);
  }
  for_each_group(to.count, [&](std::int64_t group) {
    GroupLane::Group x;
    make(group, x);
    ops::store_group(GroupLane{}, to, group, x, ops::Nearest{});
  });
}

}  // namespace octet::cpu::OCTET_ISA
