#pragma once

#include <cstdint>

#include "octet/numerics/scale.hpp"

namespace octet::ops {

/// 2^e, for -126 <= e <= 127.
OCTET_HD constexpr float power_of_two(int e) { return float_of(std::uint32_t(e + 127) << 23); }

/// A table of maxima, a column per slot.
struct History {
  float* rows;
  std::int64_t length, stride;  // rows, and columns from one row to the next
};

/// Rows begin to end - 1 of the slots under a cursor take the values of the rows that follow them, the last one `next`; or keep theirs,
/// where nothing moves. Returns the largest value that they had.
template <class Lanes, class Cursor, class Value, class Moves>
OCTET_HD Value move_rows(Lanes lanes, Cursor at, History h, std::int64_t begin, std::int64_t end, Value next, Moves moves) {
  constexpr int batch = 8;  // reads that do not wait for one another
  Value most{};
  for (std::int64_t i = begin; i < end; i += batch) {
    Value row[batch + 1];
    for (int k = 0; k <= batch; ++k) row[k] = i + k < end ? lanes.load(h.rows + (i + k) * h.stride, at) : next;
    for (int k = 0; k < batch && i + k < end; ++k) {
      most = larger(row[k], most);
      lanes.store(h.rows + (i + k) * h.stride, at, Value(moves ? row[k + 1] : row[k]));
    }
  }
  return most;
}

/// The maximum that decides a scale, from the last one and the largest one of the rows before it.
template <class Value>
OCTET_HD Value deciding_maximum(Value last, Value most, bool most_recent) {
  return most_recent ? last : Value(last != 0.0f ? larger(last, most) : last);
}

}  // namespace octet::ops
