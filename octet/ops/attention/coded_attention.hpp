#pragma once

#include "octet/ops/attention/qkv.hpp"
#include "octet/ops/column_codes/column_codes.hpp"

namespace octet::ops {

/// The quantizers of attention's operands: one known scale per tensor each. Those of gradients are for backward alone.
struct AttentionSpecs {
  QuantizeSpec q, k, v, p, o;
  QuantizeSpec d_o, dp, dq, dk, dv;
};
/// The groups of columns of qkv, of its gradient, of o and of its gradient.
ColumnGroups qkv_groups(const QkvShape&, const AttentionSpecs&);
ColumnGroups dqkv_groups(const QkvShape&, const AttentionSpecs&);
ColumnGroups o_groups(const QkvShape&, const AttentionSpecs&);
ColumnGroups d_o_groups(const QkvShape&, const AttentionSpecs&);

/// Causal attention whose products read 8-bit codes, with one scale per tensor. Q, K, V: decoded codes; scores and their sums are FP32:
///
///   s[i, j] = f sum_c q[i, c] k[j, c] / sqrt(d)     j <= i,    lse[i] = log sum_j exp(s[i, j])
///   e[i, j] = decode(encode(exp(s[i, j] - m[i]))),   o[i, c] = encode(sum_j e[i, j] v[j, c] / sum_j exp(s[i, j] - m[i]))
///
/// f is heads.score_factor, and m[i] is the maximum of row i; on a GPU, the maximum so far when cuDNN meets the score, so codes differ
/// there by their rounding. qkv: codes of E4M3 in the columns of QkvShape; o: codes [T, H dv] of E4M3; lse: f32 [H, T]. Raises specs.p.amax
/// and specs.o.amax, and adds to their health: on a GPU of p nothing, since the kernel counts nothing, and of o the same. Workspace on a
/// CPU: all operands as f32. Sources: NVIDIA's cuDNN, "SDPA FP8"; Shah et al. 2024, "FlashAttention-3", section 3.3.
struct CodedAttentionForward {
  Tensor qkv, o, lse;
  QkvShape heads;
  AttentionSpecs specs;
  Tensor document_starts = {};  // CPU only
};
/// Throws ContractError on other shapes, dtypes or specs, and what coded_attention_obstacle() has.
void coded_attention_forward(Stream&, const CodedAttentionForward&);

/// Its gradient, with p[i, j] = exp(s[i, j] - lse[i]) and delta[i] = sum_c do[i, c] o[i, c], of decoded codes:
///
///   dv[j] = sum_i decode(encode(p[i, j])) do[i]
///   dp[i, j] = p[i, j] (sum_c do[i, c] v[j, c] - delta[i]) f / sqrt(d)
///   dq[i] = sum_j decode(encode(dp[i, j])) k[j],   dk[j] = sum_i decode(encode(dp[i, j])) q[i]
///
/// d_o and o: codes [T, H dv]; dqkv: codes like qkv, of the format of specs.dq, dk and dv, which are equal. Raises the maxima of p, dp, dq,
/// dk and dv; health as above. On a GPU, cuDNN adds dq in no fixed order. Source: cuDNN, "SDPA FP8 backward".
struct CodedAttentionBackward {
  Tensor d_o, o, qkv, lse;
  Tensor dqkv;
  QkvShape heads;
  AttentionSpecs specs;
  Tensor document_starts = {};  // CPU only
};
void coded_attention_backward(Stream&, const CodedAttentionBackward&);

/// Why a target has no such attention, and in backward no such gradient, as the end of a sentence; "" where it has. A CPU has it for whole
/// sequences, with and without documents; a GPU has what cuDNN has on Hopper: heads of 128 columns and the usual scale, no documents, and
/// gradients whose last bits vary between runs.
enum class CodedPass : std::uint8_t { forward, backward };
std::string coded_attention_obstacle(const Target&, const QkvShape&, bool documents, CodedPass);

}  // namespace octet::ops
