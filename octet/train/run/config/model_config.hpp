#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/models/config.hpp"

namespace octet::train {

/// Which model: the one of a Hugging Face folder, or a named size whose properties may be changed one by one.
struct ModelConfig {
  std::string size;    // empty: that of `init`, or the smallest size of `family`
  std::string family;  // empty: the size's own
  // 0: as the size has.
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_width = 0, hidden = 0, vocabulary = 0, context = 0;
  double norm_eps = 0, rope_theta = 0;
  std::string rope_scaling = "default";  // default | none | linear | llama3 | yarn
  double rope_factor = 0, rope_low_frequency = 0, rope_high_frequency = 0, rope_mscale = 0, rope_mscale_all_dim = 0;
  std::int64_t rope_original_context = 0;
  std::string tied = "default";  // default | yes | no
  // models::ExpertsShape; -1 where 0 means something.
  std::int64_t experts = 0, experts_per_token = 0, expert_hidden = 0, shared_experts = -1, dense_layers = -1, expert_step = 0;
  std::string router_score = "default";      // default | softmax | sigmoid
  std::string router_normalize = "default";  // default | yes | no
  double router_scaling = 0;
  std::int64_t router_groups = 0, router_kept_groups = 0;
  std::string router_balance = "default";  // default | model | layer | sequence
  double router_loss = -1, router_z_loss = -1, router_bias_rate = -1, swiglu_limit = -1;
  // models::LatentShape; -1 where 0 means something.
  std::int64_t latent_rank = 0, query_rank = -1, rotary_width = 0, value_width = 0;
  std::int64_t mtp_depth = 0;          // models::ModelShape
  double mtp_loss = 0.3;               // models::ModelOptions
  std::vector<std::string> recompute;  // nn::Recompute::named
  std::int64_t recompute_layers = 0;   // ModelOptions::recompute_layers
  std::string init;                    // folder of a model to start from instead of random weights

  /// Folder with the config.json of a run that began from `init`: a resumed run reads its shape there. Empty: read from `init`. No key.
  std::string stored;

  void fields(config::FieldVisitor&);
  /// The folder whose config.json decides the shape, or empty.
  const std::string& folder() const { return init.empty() || stored.empty() ? init : stored; }
  /// The shape that config.json or the named size describes, with the keys that are set. Throws ConfigError when a key contradicts
  /// config.json (the message quotes both), when no such size or family exists, or when the numbers do not fit together; DataError and
  /// IoError as read_hugging_face_shape().
  models::ModelShape shape() const;
  /// The name to show: of the size, or of the folder.
  std::string name() const;
};

}  // namespace octet::train
