#include "octet/tensor/cut.hpp"

#include <algorithm>

namespace octet {

Cut Cut::shared(int by_copies, bool is_first) const {
  if (by_copies == 1) return *this;
  return {.whole = whole, .pieces = pieces, .alone = 0, .copies = by_copies, .first_copy = is_first};
}

Cut Cut::copied(const Shape& whole, int copies, bool first_copy) {
  const std::int64_t n = whole.count();
  return {.whole = whole, .pieces = {{n, 0, n, n}}, .alone = 0, .copies = copies, .first_copy = first_copy};
}

Cut Cut::of_rows(const Shape& whole, std::int64_t first, std::int64_t rows) {
  const std::int64_t columns = whole.rank == 2 ? whole[1] : 1, n = rows * columns;
  return {.whole = whole, .pieces = {{n, first * columns, n, n}}, .alone = n};
}

Cut Cut::of_columns(const Shape& whole, std::int64_t first, std::int64_t columns) {
  const std::int64_t n = whole[0] * columns;
  return {.whole = whole, .pieces = {{n, first, columns, whole[1]}}, .alone = n};
}

namespace {

// Values [first, first + count) of a piece. One that begins or ends within a run is cut into three at most.
void add_pieces(const CutPiece& p, std::int64_t first, std::int64_t count, std::vector<CutPiece>& out) {
  const auto place = [&](std::int64_t i) { return p.first + i / p.run * p.stride + i % p.run; };
  const auto add_run = [&](std::int64_t i, std::int64_t n) { out.push_back({n, place(i), n, n}); };
  if (const std::int64_t within = first % p.run; within > 0 || count < p.run) {
    const std::int64_t n = std::min(count, p.run - within);
    add_run(first, n);
    first += n, count -= n;
  }
  if (const std::int64_t n = count / p.run * p.run; n > 0) {
    out.push_back({n, place(first), p.run, n == p.run ? p.run : p.stride});
    first += n, count -= n;
  }
  if (count > 0) add_run(first, count);
}

}  // namespace

std::vector<CutPiece> pieces_of(const std::vector<CutPiece>& pieces, std::int64_t first, std::int64_t count) {
  std::vector<CutPiece> out;
  std::int64_t begin = 0;
  for (const CutPiece& p : pieces) {
    const std::int64_t from = std::max(first, begin), to = std::min(first + count, begin + p.count);
    if (from < to) add_pieces(p, from - begin, to - from, out);
    begin += p.count;
  }
  return out;
}

}  // namespace octet
