#pragma once

#include "octet/ops/attention/qkv.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Causal attention with grouped heads. Per sequence and query head, for tokens i and j of that sequence:
///   s[i, j] = f sum_c q[i, c] k[j, c] / sqrt(d)     j <= i,   f = heads.score_factor
///   lse[i]  = log sum_j exp(s[i, j]),   o[i, c] = sum_j exp(s[i, j] - lse[i]) v[j, c]
/// qkv: [T, (H + Hkv) d + Hkv dv] f32, bf16 or f16; o: [T, H dv] of qkv's dtype; lse: f32 [H, T], saved for backward. Products, softmax and
/// sums are FP32. Each thread has the scores of one block of query rows at a time. Results do not depend on the number of threads.
/// Workspace: per thread, keys and values of one head as f32 and the scores of a block of rows. On a GPU, cuDNN computes 16-bit attention
/// if it can (d and dv multiples of 8, both up to 128, or 192 and 128; 512 tokens or more, the first 64 shapes of a process). The content
/// and order of lse are then defined by cuDNN. Everything else runs in Octet's own kernels: lse is [H, T], heads have up to 512 columns,
/// and there are up to 65,535 sequences. Both take document_starts; a cuDNN that does not is named in a warning. document_starts: i32 [T]
/// (documents.hpp) or empty. If given, j also is at least the place at which i's document begins. With heads.part, queries are at the
/// places of the part, and read `keys`: [B W, Hkv (d + dv)], key and then value heads of all W tokens of every sequence, of qkv's dtype. A
/// CPU's results then have the bits of whole sequences. Sources: Vaswani et al. 2017, eq. 1; Ainslie et al. 2023, "GQA".
struct AttentionForward {
  Tensor qkv, o, lse;
  QkvShape heads;
  Tensor document_starts = {};
  Tensor keys = {};  // with a part
};
/// Throws ContractError on other shapes or dtypes, DeviceError beyond the limits of a GPU.
void attention_forward(Stream&, const AttentionForward&);

/// Its gradient, with p[i, j] = exp(s[i, j] - lse[i]) recomputed and delta[i] = sum_c do[i, c] o[i, c]:
///   dv[j] = sum_i p[i, j] do[i],   ds[i, j] = p[i, j] (sum_c do[i, c] v[j, c] - delta[i]),
///   dq[i] = f sum_j ds[i, j] k[j] / sqrt(d),   dk[j] = f sum_i ds[i, j] q[i] / sqrt(d)
/// d_o and o: [T, H dv]; dqkv: like qkv, overwritten; all of qkv's dtype. With heads.part, dk and dv go to `dkeys`, like `keys`,
/// as sums over the queries that are here, and only the query columns of dqkv are written. dk and dv are summed over the query heads that
/// share them, in order, by one thread. On a GPU, cuDNN adds dq in no fixed order, so last bits vary between runs, unless the stream's
/// target is deterministic: the gradients of all scores, B H S^2 values of bf16, are then workspace. Source: Dao et al. 2022,
/// "FlashAttention", appendix B.4.
struct AttentionBackward {
  Tensor d_o, o, qkv, lse;
  Tensor dqkv;
  QkvShape heads;
  Tensor document_starts = {};   // of the forward
  Tensor keys = {}, dkeys = {};  // with a part
  bool deterministic = false;    // requested by the caller or the stream's target
};
/// Throws as attention_forward does, and DeviceError if the target is deterministic and cuDNN has no deterministic gradient.
void attention_backward(Stream&, const AttentionBackward&);

/// The library of attention on this machine's GPU: "cuDNN 9.19.0", or "own kernels" and the reason.
std::string attention_library();

}  // namespace octet::ops
