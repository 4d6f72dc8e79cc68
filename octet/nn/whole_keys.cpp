#include "octet/nn/whole_keys.hpp"

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

// f(rows of members, rows of whole sequences) for each segment: the members' rows are one after the other, each of B sequences of S rows.
template <class F>
void each_segment(const RowExchange& x, const ops::QkvShape& heads, const Tensor& of_members, const Tensor& whole, const F& f) {
  const std::int64_t batch = whole.shape[0] / heads.whole(), segment = heads.sequence / 2;
  for (int m = 0; m < x.members(); ++m) {
    const SequencePart part = SequencePart::of_member(heads.whole(), m, x.members());
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t row = (m * batch + b) * heads.sequence, token = b * heads.whole();
      f(of_members.rows(row, segment), whole.rows(token + part.first, segment));
      f(of_members.rows(row + segment, segment), whole.rows(token + part.second, segment));
    }
  }
}

std::int64_t key_columns(const ops::QkvShape& heads) { return 2 * heads.kv_heads * heads.head_dim; }

void check_part(const RowExchange& x, const ops::QkvShape& heads) {
  check(x.divides() && heads.part == SequencePart::of_member(heads.whole(), x.member(), x.members()) &&
            heads.sequence * x.members() == heads.whole(),
        "attention: the part of member {} of {} begins at {} and {}, with {} of {} tokens", x.member(), x.members(), heads.part.first,
        heads.part.second, heads.sequence, heads.whole());
}

}  // namespace

Tensor gather_keys(Stream& stream, RowExchange& x, const ops::QkvShape& heads, const Tensor& qkv, Region region) {
  check_part(x, heads);
  const std::int64_t columns = key_columns(heads), all = qkv.shape[0] * x.members();
  const Tensor out = stream.empty({all, columns}, qkv.dtype, region);
  const Scope scope(stream);
  const Tensor own = stream.empty({qkv.shape[0], columns}, qkv.dtype), gathered = stream.empty({all, columns}, qkv.dtype);
  ops::copy_columns(stream, {.from = qkv, .from_column = heads.key_column(0), .to = own, .columns = columns});
  x.gather(stream, own, gathered);
  each_segment(x, heads, gathered, out, [&](const Tensor& from, const Tensor& to) { copy(stream, from, to); });
  return out;
}

void reduce_key_gradients(Stream& stream, RowExchange& x, const ops::QkvShape& heads, const Tensor& dkeys, const Tensor& dqkv) {
  check_part(x, heads);
  const Scope scope(stream);
  const Tensor partial = stream.empty(dkeys.shape, dkeys.dtype), own = stream.empty({dqkv.shape[0], key_columns(heads)}, dqkv.dtype);
  each_segment(x, heads, partial, dkeys, [&](const Tensor& to, const Tensor& from) { copy(stream, from, to); });
  x.reduce_exactly(stream, partial, own);
  ops::copy_columns(stream, {.from = own, .to = dqkv, .to_column = heads.key_column(0), .columns = own.shape[1]});
}

}  // namespace octet::nn
