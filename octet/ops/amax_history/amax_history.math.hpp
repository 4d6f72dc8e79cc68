#pragma once

#include <cstdint>

#include "octet/numerics/scale.hpp"

namespace octet::ops {

/// 2^e, for -126 <= e <= 127.
OCTET_HD constexpr float power_of_two(int e) { return float_of(std::uint32_t(e + 127) << 23); }

/// Moves the history of the slots under a cursor down one row and returns the maximum that decides their scales. Formula in
/// amax_history.hpp. `stride` is the number of columns.
template <class Lanes, class Cursor>
OCTET_HD auto advance_slots(Lanes lanes, Cursor at, float* history, std::int64_t length, std::int64_t stride, bool most_recent) {
  using Value = typename Lanes::Value;
  const Value last = lanes.load(history, at);
  const auto moves = last != 0.0f;
  Value most{}, above{};
  for (std::int64_t i = 1; i < length; ++i) {
    const Value row = lanes.load(history + i * stride, at);
    most = larger(row, most);
    if (i > 1) lanes.store(history + (i - 1) * stride, at, moves ? row : above);
    above = row;
  }
  if (length > 1) lanes.store(history + (length - 1) * stride, at, moves ? last : above);
  lanes.store(history, at, Value{});
  if (most_recent) return last;
  most = larger(last, most);
  return Value(moves ? most : last);
}

}  // namespace octet::ops
