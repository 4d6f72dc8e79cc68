#pragma once

#include <optional>

#include "octet/ops/attention/qkv.hpp"
#include "octet/ops/quantize/sink.hpp"
#include "octet/ops/rope/rope_scaling.hpp"

namespace octet::ops {

/// Angle per position of the pair `i` < d/2 of a head of d columns: f = theta^(-2i/d), or scaled_frequency(). Source: Su et al. 2021,
/// "RoFormer", eq. 15.
double rope_frequency(std::int64_t head_dim, std::int64_t i, double theta, const std::optional<RopeScaling>& scaling);

/// The columns that rotate together: i and i + d/2, as Hugging Face's rotate_half, or the neighbours 2i and 2i + 1 of the paper.
enum class RopePairs : std::uint8_t { halves, neighbours };

/// rope_amplitude() times cos and sin [S, d/2] f32 of position * rope_frequency. Computed on the host in double and rounded once, so that
/// every backend reads the same bits.
struct RopeTable {
  Tensor cos, sin;
};
/// Allocates and fills a table for positions below `sequence`. Throws ContractError on an odd head_dim.
RopeTable rope_table(Stream&, std::int64_t sequence, std::int64_t head_dim, double theta, const std::optional<RopeScaling>& scaling = {},
                     Region = Lifetime::run);
/// Throws ContractError, in the name of `op`, unless the table is one for heads of d columns and at least so many positions.
void check_rope_table(const char* op, const RopeTable&, std::int64_t head_dim, std::int64_t positions);

/// Turns every query and key head of qkv [T, (H + 2 Hkv) d], f32, bf16 or f16, in place; value heads stay. For each token at position p of
/// its sequence (heads.part), or of its document where `document_starts` (i32 [T], attention/documents.hpp) is given, or at places[t] where
/// `places` (i32 [T]) is given, pair i < d/2 and c, s = table[p, i]:
///   x[i], x[i + d/2] = x[i] c - x[i + d/2] s,  x[i + d/2] c + x[i] s
/// Pairs are RopePairs::halves.
struct RopeForward {
  Tensor qkv;
  QkvShape heads;
  RopeTable table;  // of as many rows as a whole sequence has tokens, or more
  Tensor document_starts = {};
  Tensor places = {};  // of tokens; empty: those of heads and document_starts
};
/// Throws ContractError on other shapes or dtypes, and on a CPU for a place that the table does not have.
void rope_forward(Stream&, const RopeForward&);

/// The rotation by the opposite angles: fills the sink `y` of [T, (H + 2 Hkv) d] and dqkv's dtype with the gradient that the QKV linear
/// gets; value heads are copied. dqkv may be y.plain itself, otherwise it is only read.
struct RopeBackward {
  Tensor dqkv;
  QkvShape heads;
  RopeTable table;
  Sink& y;
  Tensor document_starts = {};
};
/// Throws ContractError on other shapes or dtypes.
void rope_backward(Stream&, const RopeBackward&);

}  // namespace octet::ops
