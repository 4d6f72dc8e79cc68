#pragma once

#include <span>
#include <string>

namespace octet::nn {

/// The parts of a block that backward recomputes instead of reading them from memory: less memory for more time. Gradients are the same
/// bit for bit, since a recomputing pass quantizes with the same scales and records nothing. Source: Chen et al. 2016, section 3;
/// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 5.
///
/// Bytes per token that a block of width D, MLP width F and (H + 2 Hkv) d columns of queries, keys and values keeps for backward in BF16,
/// and recomputed without it:
///
///   norm         4 D              both norms
///   activation   2 F              SwiGLU or GELU
///   mlp          2 D + 6 F        its norm, the first GEMM, SwiGLU (4 F with GELU)
///   attention    4 D + 2 (H + 2 Hkv) d   its norm, the GEMM of queries, keys and values, RoPE, attention
///   block        all but its input, 2 D   all of the above, and attention's output GEMM
struct Recompute {
  bool norm = false, activation = false, mlp = false, attention = false, block = false;

  /// The names above, in any order; none: everything is kept. A larger part includes the smaller ones in it.
  /// Throws ConfigError, with the nearest name, for another word.
  static Recompute named(std::span<const std::string> parts);
  bool any() const { return norm || activation || mlp || attention || block; }
};

}  // namespace octet::nn
