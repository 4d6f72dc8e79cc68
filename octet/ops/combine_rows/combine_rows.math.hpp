#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// One token: y[c] (+)= sum over k of x[row[k] * cols + c], without choices that are none. Formula in combine_rows.hpp.
template <class Lanes, class T>
OCTET_HD void combine_row(Lanes lanes, std::int64_t cols, std::int64_t choices, const T* x, const std::int32_t* row, T* y, bool add) {
  lanes.each(cols, [&](auto at) {
    auto sum = lanes.load(x + row[0] * cols, at);
    for (std::int64_t k = 1; k < choices; ++k)
      if (row[k] >= 0) sum = sum + lanes.load(x + row[k] * cols, at);
    lanes.store(y, at, add ? lanes.load(y, at) + sum : sum);
  });
}

}  // namespace octet::ops
