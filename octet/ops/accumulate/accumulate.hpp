#pragma once

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Indices of Accumulate::draws.
inline constexpr int accumulate_part = 0, accumulate_update = 1;

/// Adds the gradient of one micro-batch to 8-bit storage, in one pass over memory:
///   sum = encode(x) in the first micro-batch of a step,   sum = encode(decode(sum) + x) in others.
/// x: f32 or bf16 [shape]; sum: e4m3 or e4m3_tensor [shape]; draws: i64 [2] in the device's memory, so that a replayed graph reads new
/// values: the number of this micro-batch in its step, 0 for the first, and the updates before it; key: of the parameter's draws.
///
/// The sum is FP32. Its scale is the largest power of two under which its own maximum is at most E4M3::max, so nothing saturates.
///   e4m3         one scale per block of 128. Rounded stochastically, by Philox keyed by (key, update, micro-batch, element) with 16 bits
///                per value: E4M3's spacing is 1/16 to 1/8 of a value. Nearest even loses every addend of at most half of that: a sum of 64
///                equal addends stops at a quarter to a half. Stochastic rounding has no bias; its root mean square error after 64
///                micro-batches is 18% of the sum for equal addends and 22% for independent ones (nearest even: 64% and 15%).
///   e4m3_tensor  one scale per tensor, from a maximum that a first pass finds. Nearest even, as published: for comparison.
/// Infinity and NaN, also of the sum, become NaN, which stays until the next step begins: the gradient's norm is then NaN. The same bits on
/// every backend. Source: Peng et al. 2023, "FP8-LM", section 2.2; Croci et al. 2022, "Stochastic rounding".
struct Accumulate {
  Tensor x;
  Stored sum;
  Tensor draws;
  std::uint64_t key = 0;
};
/// Throws ContractError on other shapes, dtypes or storages. Workspace, from scratch: for e4m3_tensor f32 [1 + ceil(count / 4096)].
void accumulate(Stream&, const Accumulate&);

}  // namespace octet::ops
