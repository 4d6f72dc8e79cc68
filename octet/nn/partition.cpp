#include "octet/nn/partition.hpp"

#include <algorithm>

namespace octet::nn {

Partition& whole_partition() {
  static WholePartition whole;
  return whole;
}

Part own_part(const Partition& p, std::int64_t all) {
  check(all % p.members() == 0, "partition: {} cannot be divided equally among {} members", all, p.members());
  return {all / p.members() * p.member(), all / p.members()};
}

std::vector<float> part_of(const Cut& cut, std::span<const float> whole) {
  std::vector<float> out;
  if (!cut) out.assign(whole.begin(), whole.end());
  each_run(cut.pieces, [&](std::int64_t, std::int64_t place, std::int64_t n) {
    const auto from = whole.subspan(std::size_t(place), std::size_t(n));
    out.insert(out.end(), from.begin(), from.end());
  });
  return out;
}

namespace {

// One member cuts nothing.
Cut of_several(const Partition& p, const Cut& cut) { return p.divides() ? cut : Cut{}; }

}  // namespace

Cut own_rows(const Partition& p, const Shape& whole) {
  const Part rows = own_part(p, whole[0]);
  return of_several(p, Cut::of_rows(whole, rows.first, rows.count));
}

Cut own_columns(const Partition& p, const Shape& whole) {
  const Part columns = own_part(p, whole[1]);
  return of_several(p, Cut::of_columns(whole, columns.first, columns.count));
}

Cut own_copy(const Partition& p, const Shape& whole) { return of_several(p, Cut::copied(whole, p.members(), p.member() == 0)); }

HeadPart own_key_heads(const Partition& p, std::int64_t kv_heads) {
  if (kv_heads % p.members() == 0) return {.heads = own_part(p, kv_heads)};
  check(p.members() % kv_heads == 0, "partition: {} key heads cannot be divided among {} members", kv_heads, p.members());
  const int copies = p.members() / int(kv_heads);
  return {.heads = {p.member() / copies, 1}, .copies = copies, .first_copy = p.member() % copies == 0};
}

}  // namespace octet::nn
