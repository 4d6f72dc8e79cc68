#pragma once

#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::ops {

/// Tokens whose experts are on several members: member m has experts [m L, (m + 1) L) of E. A token visits a member once, whichever of its
/// experts it chose: one row goes there, with the numbers and the weights of these choices.

/// visited: i32 [T, C] = the different members of the experts chosen[t], in the order of the choices, then -1. chosen: i32 [T, K];
/// C = min(K, members), so that all have a place. Throws ContractError on other shapes or dtypes.
void visited_members(Stream&, const Tensor& chosen, std::int64_t experts_of_member, const Tensor& visited);

/// The choices that go along with each row of a packed buffer of n rows:
///
///   r = row[t, c], m = visited[t, c]:   experts[r, j] = chosen[t, k] - m L,   weights[r, j] = w[t, k]
///
/// for the choices k on member m, numbered j = 0, 1, ... in their order; then experts -1 and weights 0.
struct PackedChoices {
  Tensor chosen, visited;  // i32 [T, K], [T, C]
  Tensor row;              // i32 [T, C], of an ExpertMap of `visited`
  std::int64_t experts_of_member = 1;
  Tensor experts;  // i32 [n, J], J = min(K, L); of unpack_weights(): empty
  Tensor weights;  // f32 [n, J]
};
/// from: the weights w, f32 [T, K].
void pack_choices(Stream&, const PackedChoices&, const Tensor& from);
/// The way back: to[t, k] = weights[r, j]. to: f32 [T, K], overwritten.
void unpack_weights(Stream&, const PackedChoices&, const Tensor& to);

}  // namespace octet::ops
