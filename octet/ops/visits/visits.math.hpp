#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// The sizes of a token's choices. Formulas in visits.hpp.
struct VisitSizes {
  std::int64_t choices, members, packed, experts_of_member;  // K, C, J, L
};

/// One token: its different members.
OCTET_HD void visit_row(const VisitSizes& s, const std::int32_t* chosen, std::int32_t* visited) {
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < s.choices; ++k) {
    const auto member = std::int32_t(chosen[k] / s.experts_of_member);
    bool known = false;
    for (std::int64_t c = 0; c < n; ++c) known |= visited[c] == member;
    if (!known && n < s.members) visited[n++] = member;
  }
  for (; n < s.members; ++n) visited[n] = -1;
}

/// f(k, r, j): choice k of one token has place j of row r.
template <class F>
OCTET_HD void each_packed(const VisitSizes& s, const std::int32_t* chosen, const std::int32_t* visited, const std::int32_t* row,
                          const F& f) {
  for (std::int64_t c = 0; c < s.members && visited[c] >= 0; ++c) {
    std::int64_t j = 0;
    for (std::int64_t k = 0; k < s.choices; ++k)
      if (chosen[k] / s.experts_of_member == visited[c] && j < s.packed) f(k, row[c], j++);
  }
}

OCTET_HD void pack_row(const VisitSizes& s, const std::int32_t* chosen, const std::int32_t* visited, const std::int32_t* row,
                       const float* from, std::int32_t* experts, float* weights) {
  for (std::int64_t c = 0; c < s.members && visited[c] >= 0; ++c)
    for (std::int64_t j = 0; j < s.packed; ++j) experts[row[c] * s.packed + j] = -1, weights[row[c] * s.packed + j] = 0;
  each_packed(s, chosen, visited, row, [&](std::int64_t k, std::int64_t r, std::int64_t j) {
    experts[r * s.packed + j] = std::int32_t(chosen[k] % s.experts_of_member);
    weights[r * s.packed + j] = from[k];
  });
}

}  // namespace octet::ops
