#include "octet/ops/stored/cpu/encode.hpp"
#include "octet/ops/stored/stored.kernels.hpp"

namespace octet::cpu::OCTET_ISA {

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
  const auto load = [&](std::int64_t group, GroupLane::Group& x) { ops::load_group(GroupLane{}, from, group, x); };
  encode_groups(a.out, a.tiny, scales_tensor(a.out.storage) ? maximum_of(from.count, load) : 0, load);
}

}  // namespace octet::cpu::OCTET_ISA
