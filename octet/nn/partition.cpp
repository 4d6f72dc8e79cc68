#include "octet/nn/partition.hpp"

#include <algorithm>
#include <numeric>

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {

Partition& whole_partition() {
  static WholePartition whole;
  return whole;
}

Tensor Partition::own_columns(Stream& stream, const Tensor& all) const {
  return stream.empty({all.shape[0], all.shape[1] / members()}, all.dtype);
}

void Partition::gather_columns(Stream& stream, const Tensor& own, const Tensor& all) {
  const std::int64_t rows = own.shape[0], columns = own.shape[1];
  const Scope scope(stream);
  const Tensor parts = stream.empty({members() * rows, columns}, own.dtype);
  gather(stream, own, parts);
  for (int m = 0; m < members(); ++m)
    ops::copy_columns(stream, {.from = parts.rows(m * rows, rows), .to = all, .to_column = m * columns, .columns = columns});
}

Tensor Partition::table_of_all(Stream& stream, const Shape& own, const std::function<void(const Tensor&)>& fill) {
  const Tensor all = stream.empty({own[0] * members(), own[1]}, DType::f32), rows = all.rows(own[0] * member(), own[0]);
  fill(rows);
  gather(stream, rows, all);
  return all;
}

IndexRange own_range(const Partition& p, std::int64_t all) {
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

Cut with_copies(const Partition& p, const Cut& cut) { return cut.shared(p.copies(), p.first_copy()); }

Cut own_rows(const Partition& p, const Shape& whole) {
  const IndexRange rows = own_range(p, whole[0]);
  return with_copies(p, Cut::of_rows(whole, rows.first, rows.count));
}

Cut own_columns(const Partition& p, const Shape& whole) {
  const IndexRange columns = own_range(p, whole[1]);
  return with_copies(p, Cut::of_columns(whole, columns.first, columns.count));
}

Cut own_copy(const Partition& p, const Shape& whole) { return with_copies(p, Cut::copied(whole, p.members(), p.member() == 0)); }

// Each head is of `copies` members, and each of these has `count` heads; one of the two is 1.
KeyHeads own_key_heads(const Partition& p, std::int64_t kv_heads) {
  const std::int64_t copies = p.members() / std::gcd(kv_heads, std::int64_t(p.members())), count = kv_heads * copies / p.members();
  check(copies == 1 || count == 1, "partition: {} key heads cannot be divided among {} members", kv_heads, p.members());
  const std::int64_t group = p.member() / copies;
  return {.heads = {group * count, count}, .copies = int(copies), .first_copy = p.member() % copies == 0};
}

}  // namespace octet::nn
