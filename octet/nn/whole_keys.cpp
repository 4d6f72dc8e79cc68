#include "octet/nn/whole_keys.hpp"

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

// Some columns of a matrix with a row per sequence.
struct Columns {
  Tensor of;
  std::int64_t first;
};

// f(columns of a member's rows, columns of whole sequences, their number) for each segment of each member. Members' rows are one after the
// other, of all sequences each; with a row per sequence, a segment is a range of columns.
template <class F>
void each_segment(const RowExchange& x, const ops::QkvShape& heads, const Tensor& of_members, const Tensor& whole, const F& f) {
  const std::int64_t width = whole.shape[1], batch = whole.shape[0] / heads.whole(), segment = heads.sequence / 2 * width;
  const Tensor sequences = whole.reshaped({batch, heads.whole() * width});
  for (int m = 0; m < x.members(); ++m) {
    const SequencePart part = SequencePart::of_member(heads.whole(), m, x.members());
    const Tensor own = of_members.rows(m * batch * heads.sequence, batch * heads.sequence).reshaped({batch, heads.sequence * width});
    f(Columns{own, 0}, Columns{sequences, part.first * width}, segment);
    f(Columns{own, segment}, Columns{sequences, part.second * width}, segment);
  }
}

void copy_columns(Stream& stream, const Columns& from, const Columns& to, std::int64_t columns) {
  ops::copy_columns(stream, {.from = from.of, .from_column = from.first, .to = to.of, .to_column = to.first, .columns = columns});
}

void check_part(const RowExchange& x, const ops::QkvShape& heads) {
  check(x.divides() && heads.part == SequencePart::of_member(heads.whole(), x.member(), x.members()) &&
            heads.sequence * x.members() == heads.whole(),
        "attention: the part of member {} of {} begins at {} and {}, with {} of {} tokens", x.member(), x.members(), heads.part.first,
        heads.part.second, heads.sequence, heads.whole());
}

}  // namespace

Tensor gather_keys(Stream& stream, RowExchange& x, const ops::QkvShape& heads, const Tensor& qkv, Region region) {
  check_part(x, heads);
  const std::int64_t columns = heads.key_columns(), all = qkv.shape[0] * x.members();
  const Tensor out = stream.empty({all, columns}, qkv.dtype, region);
  const Scope scope(stream);
  const Tensor own = stream.empty({qkv.shape[0], columns}, qkv.dtype), gathered = stream.empty({all, columns}, qkv.dtype);
  ops::copy_columns(stream, {.from = qkv, .from_column = heads.key_column(0), .to = own, .columns = columns});
  x.gather(stream, own, gathered);
  each_segment(x, heads, gathered, out,
               [&](const Columns& from, const Columns& to, std::int64_t columns) { copy_columns(stream, from, to, columns); });
  return out;
}

void reduce_key_gradients(Stream& stream, RowExchange& x, const ops::QkvShape& heads, const Tensor& dkeys, const Tensor& dqkv) {
  check_part(x, heads);
  const Scope scope(stream);
  const Tensor partial = stream.empty(dkeys.shape, dkeys.dtype), own = stream.empty({dqkv.shape[0], heads.key_columns()}, dqkv.dtype);
  each_segment(x, heads, partial, dkeys,
               [&](const Columns& to, const Columns& from, std::int64_t columns) { copy_columns(stream, from, to, columns); });
  x.reduce_exactly(stream, partial, own);
  ops::copy_columns(stream, {.from = own, .to = dqkv, .to_column = heads.key_column(0), .columns = own.shape[1]});
}

}  // namespace octet::nn
