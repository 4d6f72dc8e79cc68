#pragma once

#include "octet/nn/row_exchange.hpp"
#include "octet/ops/attention/qkv.hpp"

namespace octet::nn {

/// Keys and values of whole sequences, of which every member has its part: SequencePart::of_member(). With W tokens per sequence and the
/// columns n = 2 Hkv d of keys and values, a member sends (members - 1) B W n / members values in either direction.
///
/// [B W, n], the tokens of each sequence in order, from qkv [B S, (H + 2 Hkv) d] of the own part. Workspace: as much, and the own part.
Tensor gather_keys(Stream&, RowExchange&, const ops::QkvShape&, const Tensor& qkv, Region);
/// The key and value columns of dqkv [B S, ...] = the own rows of the sum over members of dkeys [B W, n]; of f32 or bf16, added in FP32 and
/// rounded once. Workspace: the same.
void reduce_key_gradients(Stream&, RowExchange&, const ops::QkvShape&, const Tensor& dkeys, const Tensor& dqkv);

}  // namespace octet::nn
