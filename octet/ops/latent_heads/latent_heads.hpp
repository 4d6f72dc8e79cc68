#pragma once

#include "octet/ops/columns/columns.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::ops {

/// Heads of latent attention: H query heads and as many key heads of d = n + r columns, of which the last r are turned by position, and H
/// value heads of dv. n, r and dv are even.
struct LatentHeads {
  QkvShape heads;           // kv_heads = heads
  std::int64_t turned = 0;  // r
  RopePairs pairs = RopePairs::neighbours;

  std::int64_t plain() const { return heads.head_dim - turned; }
  /// Of keys and values before the shared columns of keys come: per head n of a key, then dv of a value.
  std::int64_t expanded() const { return heads.heads * (plain() + heads.value_dim()); }
};

/// The fused matrix of attention from queries [T, H d], expanded latents [T, H (n + dv)] and the columns of keys [T, r] that all heads
/// share, for a token at position p of its sequence or document, or at places[t] where `places` (i32 [T]) is given:
///
///   q_h = [q_h[0, n), turn_p(q_h[n, d))],   k_h = [kv_h[0, n), turn_p(k)],   v_h = kv_h[n, n + dv)
///
/// turn_p rotates pair i < r/2 by the angles of row p of the table [>= S, r/2]. Source: DeepSeek-AI 2024, "DeepSeek-V2", eq. 9 to 19.
struct LatentArguments {
  ColumnsOf q;
  Tensor kv;
  ColumnsOf k;
  Tensor qkv;  // QkvShape's columns, overwritten
  LatentHeads shape;
  RopeTable table;
  Tensor document_starts = {};
  Tensor places = {};  // of tokens, of forward alone; empty: those of heads and document_starts
};
/// Throws ContractError on other shapes or dtypes; all matrices are f32, bf16 or f16.
void latent_heads_forward(Stream&, const LatentArguments&);

/// Its gradient: dq and dkv are turned and copied back, dk is the sum over heads, in their order and in FP32, turned back. All are
/// overwritten; dq and dk may be columns of one matrix. The arguments are the gradients of forward's.
void latent_heads_backward(Stream&, const LatentArguments& gradients);

}  // namespace octet::ops
