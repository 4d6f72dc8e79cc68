#pragma once

#include <map>
#include <optional>

#include "octet/models/adapters.hpp"
#include "octet/models/registry.hpp"
#include "octet/optim/optimizer_config.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/train/layout/layout.hpp"

namespace octet::train {

/// A block of a model between embedding and head, of which each of so many members has a part. It has no memory, and answers what its
/// family can do. A model with adapters has all blocks, of which some may have none.
struct ModelShard {
  std::unique_ptr<models::Model> model;
  std::vector<Parameter*> parameters;  // that train
  std::vector<Parameter*> stacks;      // of these, those of experts
};

/// Those of one shape, made when they are first asked for. Copies share them.
class ModelShards {
 public:
  /// Throws ConfigError for a family or a shape that does not exist, and ContractError for members that cannot divide it.
  const ModelShard& of(const models::ModelShape&, const models::AdapterConfig&, std::int64_t members);

 private:
  models::ModelShape shape_;
  models::AdapterConfig adapters_;
  std::map<std::int64_t, std::shared_ptr<ModelShard>> made_;  // by members
};

/// The work that ranks divide: a model, its precision, and the states of its optimizer.
struct Subject {
  models::ModelShape shape;
  std::int64_t experts = 0;   // routed ones per layer
  std::int64_t sequence = 0;  // tokens
  std::string recipe = "bf16";
  std::string eight_bit_recipe = "bf16";                                       // of layouts with 8-bit operands
  bool codes_attention = false;                                                // products of some attention read 8-bit codes
  std::optional<optim::OptimizerConfig> optimizer = optim::OptimizerConfig{};  // at the layout's level
  bool preferences = false;                                                    // the loss is one of pairs of answers
  models::AdapterConfig adapters = {};                                         // that train in place of the model's own weights
  parallel::CommConfig comm = {};
  double expert_room = 0;      // ranks.expert_room
  std::int64_t sequences = 0;  // of a step, over all ranks; 0: not known
  std::int64_t per_node = 0;   // ranks with fast links; 0: not known

  optim::StateStorage storage(const Layout&) const;
  const std::string& recipe_of(const Layout& l) const { return l.eight_bit ? eight_bit_recipe : recipe; }
  std::int64_t micro_batches(const Layout& l) const { return sequences / (l.micro_batch * l.sequence_groups()); }
  /// Of a pipeline with that schedule.
  parallel::PipelineShape pipeline(const Layout& l) const {
    return parallel::pipeline_shape(l.schedule, l.pipeline, l.chunks, micro_batches(l));
  }

  const ModelShard& part(std::int64_t members = 1) const { return parts.of(shape, adapters, members); }
  /// The family's entry; null for a model that this version only plans.
  const models::ModelFamily* family() const;

  mutable ModelShards parts = {};
};

/// Names of the families that can do this: "llama, qwen2 or qwen3".
std::string families_that(bool models::ModelFamily::*can);
/// The same of every family.
std::string all_families();

}  // namespace octet::train
