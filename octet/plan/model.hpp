#pragma once

#include <string>
#include <vector>

#include "octet/models/config.hpp"

namespace octet::plan {

/// Mixture of experts, as the planner counts it.
struct Experts {
  std::int64_t count = 0;         // routed experts per layer; 0: none
  std::int64_t per_token = 0;     // routed experts that a token uses
  std::int64_t shared = 0;        // experts that every token uses
  std::int64_t hidden = 0;        // width of one
  std::int64_t dense_layers = 0;  // layers without experts, whose width is ModelShape::hidden
};

/// The properties of a model on which memory, transfers and time depend. Parameters are those of matrices.
struct PlannedModel {
  models::ModelShape shape;
  bool gated = true;                // three matrices per MLP, else two
  std::int64_t attention = 0;       // parameters of one layer's attention; 0: as the shape's heads say
  double score_width = 0;           // columns of queries and values, averaged; 0: heads * head_dim
  bool norms_of_all_heads = false;  // tensor ranks exchange sums of queries and keys
  Experts experts = {};

  std::int64_t layers() const { return shape.layers; }
  std::int64_t query_columns() const { return shape.heads * shape.head_dim; }
  std::int64_t key_columns() const { return shape.kv_heads * shape.head_dim; }
  double score_columns() const { return score_width > 0 ? score_width : double(query_columns()); }
  double attention_parameters() const;
  double expert_layers() const { return experts.count > 0 ? double(shape.layers - experts.dense_layers) : 0; }
  /// Averages over layers: of all parameters but routed experts', of routed ones, and of those that one token uses.
  double dense_parameters() const;
  double routed_parameters() const;
  /// Of routers and shared experts, which are among dense_parameters().
  double shared_parameters() const;
  double active_parameters() const;
  /// Of the embedding, and as many of the head if it is not tied.
  double end_parameters() const { return double(shape.padded_vocabulary()) * double(shape.width); }
  /// Layers behind the last block that predict further tokens while the model trains. Each reads embedding and head again.
  std::int64_t ahead() const { return shape.mtp_depth; }
  /// One of them, as a model of one block: with experts, if the model has some.
  PlannedModel layer_ahead() const;
  /// Of its product with both of its inputs, [D, 2 D], of which tensor ranks have copies.
  double joining_parameters() const { return 2 * double(shape.width) * double(shape.width); }
  /// All of them.
  double parameters() const;
  /// Those by which a token is multiplied: the head's once per token that is predicted.
  double used_parameters() const;
  /// The MLP columns that a token uses, averaged over layers.
  double active_hidden() const;
};

PlannedModel planned_model(const models::ModelShape&);

/// A GPT of these sizes, with tied embedding and MLPs of four times its width.
PlannedModel gpt_model(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t vocabulary);

/// Models that the planner knows besides the named sizes of the program, and the largest of these. Sources: Grattafiori et al. 2024, table
/// 3; Brown et al. 2020, table 2.1.
struct NamedModel {
  std::string name;
  PlannedModel model;
};
const std::vector<NamedModel>& large_models();  // llama-3-70b, gpt-3-175b, llama-3-405b, deepseek-v3

}  // namespace octet::plan
