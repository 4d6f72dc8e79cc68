#pragma once

#include <vector>

#include "octet/tensor/tensor.hpp"

namespace octet {

/// Consecutive values of a part, whose places in the whole repeat: value i of it is value
///   first + i / run * stride + i % run        of the whole, both in row-major order.
struct CutPiece {
  std::int64_t count = 0, first = 0, run = 0, stride = 0;
  friend bool operator==(const CutPiece&, const CutPiece&) = default;
};

/// How the values of a tensor that is kept here lie in a whole one, of which several owners keep parts. Owners may have equal values, too,
/// such as a norm's weight: these are a part's last ones.
struct Cut {
  Shape whole;                   // rank 0: nothing is cut
  std::vector<CutPiece> pieces;  // all values here, in their order
  std::int64_t alone = 0;        // the first values, of which there is no other copy
  int copies = 1;                // of the later ones, on as many owners
  bool first_copy = true;        // this owner has the first copy

  explicit operator bool() const { return whole.rank > 0; }
  /// The first values, as many as this owner counts and saves for all: of later ones another owner does.
  std::int64_t counted(std::int64_t here) const { return *this && !first_copy ? alone : here; }

  /// The same values, of all of which so many owners have a copy.
  Cut shared(int by_copies, bool is_first) const;
  /// A tensor of which every owner has a copy.
  static Cut copied(const Shape& whole, int copies, bool first_copy);
  /// Rows [first, first + rows) of a matrix or vector.
  static Cut of_rows(const Shape& whole, std::int64_t first, std::int64_t rows);
  /// Columns [first, first + columns) of a matrix.
  static Cut of_columns(const Shape& whole, std::int64_t first, std::int64_t columns);
};

/// The pieces of values [first, first + count) of a part with these pieces.
std::vector<CutPiece> pieces_of(const std::vector<CutPiece>&, std::int64_t first, std::int64_t count);

/// f(begin, place, n) for each run of neighbours: values [begin, begin + n) of the part are [place, place + n) of the whole.
template <class F>
void each_run(const std::vector<CutPiece>& pieces, const F& f) {
  std::int64_t begin = 0;
  for (const CutPiece& p : pieces) {
    for (std::int64_t i = 0; i < p.count; i += p.run) f(begin + i, p.first + i / p.run * p.stride, std::min(p.run, p.count - i));
    begin += p.count;
  }
}

}  // namespace octet
