#pragma once

#include "octet/ops/first_keys/first_keys.hpp"

namespace octet::ops {

/// Of row t; formula in first_keys.hpp.
OCTET_HD std::int32_t first_key(std::int64_t t, const std::int32_t* starts, std::int64_t window, std::int64_t sequence,
                                const SequencePart& part) {
  const std::int64_t first = part.place(t % sequence, sequence) - window + 1, start = starts != nullptr ? starts[t] : 0;
  return std::int32_t(first > start ? first : start);
}

}  // namespace octet::ops
