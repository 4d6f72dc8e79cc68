#pragma once

#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// x[e] = deviation * z(key, first + e), e the element's place in memory, rounded to x's dtype, f32 or bf16: independent standard normal
/// values, the same on every backend. Words w of philox(key, i) give numbers 4i to 4i + 3:
///   z = sqrt(-2 ln u) cos(2 pi v), then sin,   u, v = uniform(w[0]), uniform(w[1]), then of w[2], w[3]
/// `first`: of a slice, a multiple of 4. Throws ContractError on other dtypes. Source: Box and Muller 1958, "A Note on the Generation of
/// Random Normal Deviates".
void fill_normal(Stream&, std::uint64_t key, double deviation, const Tensor& x, std::int64_t first = 0);

/// The codes and scales that encode_stored() makes of the same values in f32, without memory for these. Per-tensor scales need all values
/// of the variable first, also for a slice, which are therefore computed twice. A variable with a cut has the values of its places in the
/// whole: every owner of a part makes its own. Workspace, from scratch: f32 [1] with per-tensor scales, the pieces of a cut.
/// Throws as encode_stored(), and unless the slice begins at a multiple of 128, or is empty, and is within the variable.
void fill_normal(Stream&, std::uint64_t key, double deviation, const StoredSlice& x);

}  // namespace octet::ops
