#include "octet/nn/adapter_shard.hpp"

#include <algorithm>

namespace octet::nn {

std::int64_t LowRank::rows() const {
  std::int64_t n = 0;
  for (const ops::RowBlock& b : blocks) n += b.rows;
  return n;
}

AdapterShard::AdapterShard(const Parameter& weight, const LowRank& form, const Partition& p)
    : out(weight.shape[0]),
      whole_in(weight.whole()[1]),
      a{std::int64_t(form.blocks.size()) * form.rank, whole_in},
      b{form.rows(), form.rank},
      blocks(form.blocks) {
  check(form.rank >= 1 && !form.blocks.empty(), "adapter {}: wants a rank and a block of rows", weight.path);
  if (!weight.cut) return;
  if (weight.shape[1] < whole_in) divide_columns(weight, p);
  else divide_rows(weight, form, p);
}

void AdapterShard::divide_columns(const Parameter& weight, const Partition& p) {
  first_column = weight.cut.pieces.front().first;
  cut_of_a = Cut::of_columns(a, first_column, weight.shape[1]), cut_of_b = own_copy(p, b);
  a = {a[0], weight.shape[1]};
}

// Rows of the own weight are those of its pieces, in their order. Those that other members have, too, are the last ones.
void AdapterShard::divide_rows(const Parameter& weight, const LowRank& form, const Partition& p) {
  const std::int64_t in = weight.shape[1], rank = form.rank;
  const std::int64_t alone = weight.cut.copies == 1 ? weight.shape[0] : weight.cut.alone / in;
  cut_of_b.whole = b, cut_of_a = own_copy(p, a), blocks.clear();
  std::int64_t before = 0;  // rows of B
  for (const ops::RowBlock& block : form.blocks) {
    ops::RowBlock own;
    std::int64_t at = 0;  // rows of the own weight
    for (const CutPiece& piece : weight.cut.pieces) {
      const std::int64_t first = piece.first / in, rows = piece.count / in;
      const std::int64_t begin = std::max(first, block.first), end = std::min(first + rows, block.first + block.rows), n = end - begin;
      if (n > 0) {
        const std::int64_t here = at + begin - first, values = n * rank;
        if (own.rows == 0) own.first = here;
        check(own.first + own.rows == here, "adapter {}: the own rows of a block are no neighbours", weight.path);
        own.rows += n;
        cut_of_b.pieces.push_back({values, (before + begin - block.first) * rank, values, values});
        if (here + n <= alone) cut_of_b.alone += values;
        else cut_of_b.copies = weight.cut.copies, cut_of_b.first_copy = weight.cut.first_copy;
      }
      at += rows;
    }
    check(own.rows > 0, "adapter {}: a member has no row of a block", weight.path);
    blocks.push_back(own), before += block.rows;
  }
  std::int64_t rows = 0;
  for (const ops::RowBlock& own : blocks) rows += own.rows;
  b = {rows, rank};
}

}  // namespace octet::nn
