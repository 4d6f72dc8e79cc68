#include <algorithm>
#include <cstring>

#include "octet/ops/stored/cpu/group.hpp"
#include "octet/ops/stored_sum/stored_sum.kernels.hpp"
#include "octet/ops/stored_sum/stored_sum.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t piece_groups = 32;

struct Counts {
  std::int64_t largest = 0, flushed = 0;
};

// A value of 0 always has the code of 0, so flushed values are the codes of 0 beyond these.
void count_group(const ops::StoredView& sum, std::int64_t group, const GroupLane::Group& x, Counts& counts) {
  const std::int64_t begin = group * storage_block;
  const int n = int(std::min(storage_block, sum.count - begin));
  const std::uint8_t* const codes = sum.as<std::uint8_t>() + begin;
  float values[storage_block];
  std::memcpy(values, &x, sizeof values);
  int largest = 0, codes_of_0 = 0, zeros = 0;
  for (int i = 0; i < n; ++i) largest += ops::is_largest(codes[i]), codes_of_0 += (codes[i] & 0x7F) == 0;
  for (int i = 0; i < n; ++i) zeros += values[i] == 0;
  counts.largest += largest, counts.flushed += codes_of_0 - zeros;
}

template <class In, class Out>
void sum_groups(In in, Out out, const ops::Addends& parts, const ops::StoredView& sum, bool adds, std::int64_t* counts) {
  const std::int64_t groups = ops::groups_of(sum.count);
  for_each(ceil_div(groups, piece_groups), piece_groups * storage_block * 8, [&](std::int64_t piece) {
    Counts own;
    for (std::int64_t g = piece * piece_groups; g < std::min(groups, (piece + 1) * piece_groups); ++g) {
      GroupLane::Group x;
      ops::sum_parts(in, out, GroupLane{}, parts, sum, adds, g, x);
      ops::store_group(out, GroupLane{}, sum, g, x, ops::Nearest{});
      if (counts != nullptr) count_group(sum, g, x, own);
    }
    if (counts == nullptr) return;
    __atomic_fetch_add(&counts[0], own.largest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts[1], own.flushed, __ATOMIC_RELAXED);
  });
}

}  // namespace

void stored_sum(const ops::StoredSum& a) {
  const ops::Addends parts = ops::addends_of(a);
  ops::StoredView sum = ops::view_of(a.sum);
  if (sum.storage == Storage::e4m3_tensor) sum.next_scale = 1.0f / sum.tensor_descale();
  ops::with_sum_codec(parts.parts.storage, [&](auto in) {
    ops::with_sum_codec(sum.storage, [&](auto out) { sum_groups(in, out, parts, sum, a.adds, a.counts.as<std::int64_t>()); });
  });
}

}  // namespace octet::cpu::OCTET_ISA
