#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/nn/balance.hpp"
#include "octet/ops/rope/rope.hpp"
#include "octet/ops/route/route.hpp"

namespace octet::models {

/// The experts of a model's layers, of which a router chooses some per token. The default form has none.
struct ExpertsShape {
  std::int64_t number = 0;  // routed experts of a layer; 0: none, and nothing else here counts
  std::int64_t chosen = 0;  // of them, by each token
  std::int64_t width = 0;   // columns inside one
  std::int64_t shared = 0;  // experts that every token uses, which are one MLP of shared * width columns
  ops::Routing::Score score = ops::Routing::Score::softmax;
  bool normalize = false;  // weights of the chosen ones have the sum `scaling`
  double scaling = 1;
  std::int64_t groups = 1, kept_groups = 1;
  bool biased = false;   // the choice adds a bias per expert, also where training does not move it
  bool in_turn = false;  // Routing::in_turn
  nn::Balance balance = {};
  double limit = 0;  // of SwiGLU inside experts: ops::weighted_swiglu_forward; 0: none
  // Layer i has experts if i >= first_dense, (i + 1) % step = 0, and i is not among `dense`; others have an MLP of ModelShape::hidden.
  std::int64_t first_dense = 0, step = 1;
  std::vector<std::int64_t> dense = {};

  explicit operator bool() const { return number > 0; }
  bool in_layer(std::int64_t i) const {
    return number > 0 && i >= first_dense && (i + 1) % step == 0 && std::ranges::find(dense, i) == dense.end();
  }
  /// Layers with experts before layer n.
  std::int64_t layers_before(std::int64_t n) const;
  ops::Routing routing() const;
  bool operator==(const ExpertsShape&) const = default;
};

/// Latents of a model's attention, from which keys and values come. The default form has none.
struct LatentShape {
  std::int64_t rank = 0;         // columns of the latent of keys and values; 0: none, and nothing else here counts
  std::int64_t query_rank = 0;   // of that of queries; 0: queries have none
  std::int64_t turned = 0;       // last columns of query and key heads that are rotated
  std::int64_t value_width = 0;  // columns of a value head
  ops::RopePairs pairs = ops::RopePairs::neighbours;

  explicit operator bool() const { return rank > 0; }
  bool operator==(const LatentShape&) const = default;
};

/// Layers whose attention reads the last tokens alone. The default form has none.
struct WindowShape {
  std::int64_t tokens = 0;       // that attention reads, the token itself among them; 0: no layer has a window, and nothing else counts
  std::int64_t global_step = 0;  // each so many-th layer has no window; 0: every layer has one
  double rope_theta = 0;         // of rotations in layers with a window, which no scaling changes; 0: those of other layers

  explicit operator bool() const { return tokens > 0; }
  bool in_layer(std::int64_t i) const { return tokens > 0 && !(global_step > 0 && (i + 1) % global_step == 0); }
  bool operator==(const WindowShape&) const = default;
};

/// Constant factors. The default form changes nothing.
struct Multipliers {
  double embedding = 1;  // of embedded tokens
  double branch = 1;     // of what attention and MLP add to the residual stream
  double logits_divisor = 1;
  double scores = 0;  // of products of queries and keys; 0: 1 / sqrt(head_dim)
  bool operator==(const Multipliers&) const = default;
};

/// The most that ModelShape::mtp_depth may be.
inline constexpr std::int64_t most_ahead = 8;
/// Biases of linear layers in blocks, beside those that a family always has. The default form has none.
struct BiasShape {
  bool attention = false;  // of queries, keys and values, and of the output
  bool mlp = false;        // of gate, up and down
  bool operator==(const BiasShape&) const = default;
};

/// The shape of a decoder-only transformer of any family.
struct ModelShape {
  std::string family;      // key of the registry
  std::int64_t width = 0;  // D
  std::int64_t layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t hidden = 0;        // F
  std::int64_t vocabulary = 0;    // number of tokens
  std::int64_t max_sequence = 0;  // longest context; rows of learned positions
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::optional<ops::RopeScaling> rope_scaling;
  bool tied = false;  // head and embedding share one matrix
  ExpertsShape experts = {};
  LatentShape latent = {};
  WindowShape window = {};
  Multipliers multipliers = {};
  BiasShape biases = {};
  double clip_qkv = 0;             // queries, keys and values are between this and its negative; 0: no limit
  std::int64_t unturned_step = 0;  // each so many-th layer has no rotations; 0: all have
  std::int64_t mtp_depth = 0;      // blocks behind the last one that predict further tokens while the model trains: models::MtpLayer
  std::int64_t kept_layers = 0;    // blocks of files behind all of these: exports have them as they came, and nothing computes them

  /// Blocks with those that predict further tokens.
  std::int64_t all_layers() const { return layers + mtp_depth; }
  bool turns(std::int64_t layer) const { return unturned_step == 0 || (layer + 1) % unturned_step != 0; }
  /// Columns of a head that are rotated, and of a value head.
  std::int64_t turned_columns() const { return latent ? latent.turned : head_dim; }
  std::int64_t value_columns() const { return latent ? latent.value_width : head_dim; }
  /// Matrix values of one layer's attention.
  std::int64_t attention_parameters() const;
  /// Rows of embedding and head: the vocabulary up to the next multiple of 16, as 8-bit GEMMs need.
  std::int64_t padded_vocabulary() const { return round_up(vocabulary, 16); }
  /// Values of those rows that belong to no token: no parameters.
  std::int64_t padding() const { return (padded_vocabulary() - vocabulary) * width * (tied ? 1 : 2); }
  std::vector<std::int64_t> layers_with_experts() const;
  /// The same model as its files describe it: they do not say which of the blocks behind the last one train.
  ModelShape of_files() const;
  bool operator==(const ModelShape&) const = default;
};

}  // namespace octet::models
