#pragma once

#include <string>

#include "octet/config/fields.hpp"
#include "octet/plan/model.hpp"

namespace octet::plan {

/// A model to plan for, as a TOML file: the shape of a decoder, and its experts if it has some.
struct ModelFile {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_width = 0, hidden = 0, vocabulary = 0;
  bool tied = false, gated = true;
  std::int64_t attention_parameters = 0;
  double score_width = 0;
  std::int64_t experts = 0, experts_per_token = 0, shared_experts = 0, expert_hidden = 0, dense_layers = 0;

  void fields(config::FieldVisitor&);
  /// Throws ConfigError that names the keys that are missing or do not fit together.
  PlannedModel model() const;
};

/// A model of large_models(), a named size, or that of a file. Throws ConfigError with the names where neither exists, and as
/// config::read_toml_file().
PlannedModel model_named(const std::string& name_or_file);

}  // namespace octet::plan
