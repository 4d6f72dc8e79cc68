#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// out = a + b, n values. out may be a or b.
template <class Lanes, class A, class B, class Out>
OCTET_HD void add_row(Lanes lanes, std::int64_t n, const A* a, const B* b, Out* out) {
  lanes.each(n, [&](auto at) { lanes.store(out, at, lanes.load(a, at) + lanes.load(b, at)); });
}

}  // namespace octet::ops
