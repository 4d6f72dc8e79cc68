#pragma once

#include <optional>

#include "octet/ops/rope/rope.hpp"

namespace octet::nn {

/// Attention whose keys and values come from a latent of each token, and by choice its queries, too: see LatentQkv.
struct LatentConfig {
  std::int64_t kv_rank = 0;    // columns of the latent; 0: attention has none, and nothing else here counts
  std::int64_t q_rank = 0;     // columns of that of queries; 0: queries are those of the first layer
  std::int64_t turned = 0;     // last columns of each query and key head that are rotated; those of keys are one head for all
  std::int64_t value_dim = 0;  // columns of a value head
  ops::RopePairs pairs = ops::RopePairs::neighbours;
  float score_factor = 1;  // QkvShape::score_factor
  double norm_eps = 1e-6;  // of the latents' norms

  explicit operator bool() const { return kv_rank > 0; }
};

/// The shape of a block's attention.
struct AttentionConfig {
  std::int64_t width;  // D
  std::int64_t heads, kv_heads, head_dim;
  bool qkv_bias = false, out_bias = false;
  bool rope = true;
  float score_factor = 1;                    // QkvShape::score_factor, without latents
  double out_deviation = 0.02;               // of Wo's start: scaled down with depth
  std::optional<double> head_norm_eps = {};  // of the norms of query and key heads; none: no such norms
  float head_norm_offset = 0;                // NormConfig::offset
  bool norms_of_all_heads = false;           // one norm over all heads, whose sums members of a partition add up
  double clip = 0;                           // of queries, keys and values, without latents; 0: none
  LatentConfig latent = {};
  bool recomputed = false;  // backward computes all of it again

  std::int64_t value_dim() const { return latent ? latent.value_dim : head_dim; }
};

}  // namespace octet::nn
