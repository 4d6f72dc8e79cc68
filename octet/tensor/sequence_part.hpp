#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet {

/// The tokens of each sequence whose rows a matrix has: all of them, or two segments of as many neighbours, one after the other.
struct SequencePart {
  std::int64_t whole = 0;              // tokens of a sequence; 0: the rows here are all of them
  std::int64_t first = 0, second = 0;  // places of the first tokens of both segments

  /// Of 2n segments, those with the numbers m and 2n - 1 - m: with a causal mask, all n members have as many scores. `whole` is a multiple
  /// of 2n. One member has everything.
  static constexpr SequencePart of_member(std::int64_t whole, int member, int members) {
    if (members == 1) return {};
    const std::int64_t segment = whole / (2 * members);
    return {whole, member * segment, (2 * members - 1 - member) * segment};
  }

  OCTET_HD constexpr explicit operator bool() const { return whole > 0; }
  /// The place in its sequence of row `row` of the `rows` that a sequence has here.
  OCTET_HD constexpr std::int64_t place(std::int64_t row, std::int64_t rows) const {
    if (whole == 0) return row;
    return row < rows / 2 ? first + row : second + row - rows / 2;
  }
  friend bool operator==(const SequencePart&, const SequencePart&) = default;
};

}  // namespace octet
