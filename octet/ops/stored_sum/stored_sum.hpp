#pragma once

#include <span>

#include "octet/ops/stored/stored.hpp"

namespace octet::ops {

/// sum[i] = parts[0, i] + parts[1, i] + ... + parts[R-1, i] + more[0][i] + ..., decoded, added in FP32 in this order, and stored to nearest
/// even. With one part it converts one storage to another. `adds`: what `sum` has comes first, in f32 or bf16. parts: [R * n] values of
/// f32, bf16, e4m3 or e4m3_tensor, part after part; R > 1 parts of e4m3 have a multiple of 128 values each. sum: [n]. e4m3 gets scales of
/// the sums. e4m3_tensor has its descale in sum.scales[0] already: larger values saturate, NaN and infinity become NaN.
struct StoredSum {
  static constexpr std::size_t most_more = 15;

  Stored parts, sum;
  std::span<const Stored> more = {};  // at most most_more, [n] each, of the storage of `parts`
  bool adds = false;
  /// i64 [2] or empty, of an 8-bit sum: adds the values that got the largest code, and those other than 0 that got the code of 0.
  Tensor counts = {};
};
/// Throws ContractError on other shapes, dtypes or storages.
void stored_sum(Stream&, const StoredSum&);
/// The same values in the storage of `to`.
inline void convert_stored(Stream& stream, const Stored& from, const Stored& to) { stored_sum(stream, {.parts = from, .sum = to}); }

}  // namespace octet::ops
