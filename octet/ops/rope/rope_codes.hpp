#pragma once

#include "octet/ops/column_codes/column_codes.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::ops {

/// Codes of queries, keys and values whose queries and keys are turned first:
///
///   codes = encode_columns(rope_forward(qkv))
///
/// with the bits of these two. On a GPU one pass, unless health is measured. qkv: bf16 there; its content is undefined afterwards. Groups:
/// of queries, keys and values. Throws as these do.
struct RopeCodes {
  RopeForward rope;
  ColumnGroups groups;
  Tensor codes;
};
void rope_codes(Stream&, const RopeCodes&);

/// rope_forward(), and the maxima of the groups of its result, as column_maxima() finds them. On a GPU one pass.
void rope_maxima(Stream&, const RopeForward&, const ColumnGroups&, const Tensor& maxima);

}  // namespace octet::ops
