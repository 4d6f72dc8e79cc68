#pragma once

#include <cstdint>

namespace octet::nn {

/// The part of a member among n: of `all` things in equal numbers, [first, first + count).
struct IndexRange {
  std::int64_t first = 0, count = 0;
};

}  // namespace octet::nn
