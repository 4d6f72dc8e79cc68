#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"
#include "octet/tensor/cut.hpp"

namespace octet {

/// Where the values of a part are in the whole, as kernels read it: the pieces of a Cut, places rising, then end_of_places. In the memory
/// of the device.
struct CutPositions {
  const CutPiece* pieces = nullptr;

  OCTET_HD std::int64_t operator()(std::int64_t i) const {
    const CutPiece* const p = piece_of(i);
    return p->first + i / p->run * p->stride + i % p->run;
  }
  /// How many values from i on are neighbours in the whole, too.
  OCTET_HD std::int64_t neighbours(std::int64_t i) const {
    const CutPiece* const p = piece_of(i);
    const std::int64_t of_run = p->run - i % p->run, of_piece = p->count - i;
    return of_run < of_piece ? of_run : of_piece;
  }

 private:
  /// i: then counted from the piece's first value.
  OCTET_HD const CutPiece* piece_of(std::int64_t& i) const {
    const CutPiece* p = pieces;
    for (; i >= p->count; ++p) i -= p->count;
    return p;
  }
};

/// The last piece of CutPositions, for groups of values that end beyond the part.
inline constexpr CutPiece end_of_places{.count = INT64_MAX, .first = 0, .run = INT64_MAX, .stride = 0};

}  // namespace octet
