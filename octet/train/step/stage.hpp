#pragma once

#include "octet/nn/visitor.hpp"
#include "octet/train/step/engine_config.hpp"

namespace octet::train {

/// The model of which stages have some blocks, with its plan and without memory.
struct WholeModel {
  explicit WholeModel(const EngineConfig&);

  scaling::Precision precision;
  nn::DropoutDraws draws;
  std::unique_ptr<models::Model> model;
};

/// The chunks of a model that each stage of a pipeline has: ranks.pipeline times its chunks parts of consecutive blocks, of which
/// the costliest one costs as little as possible on the target, by parallel::layer_costs() of the precision plan. Throws ConfigError,
/// naming the rule and what to change, for a model, a number of stages or options that a pipeline does not have.
std::vector<std::vector<models::ModelChunk>> chunks_of_stages(const EngineConfig&, const Target&);
/// The same by that configuration's whole model, whose tables have no memory afterwards.
std::vector<std::vector<models::ModelChunk>> chunks_of_stages(const EngineConfig&, const Target&, WholeModel&);

}  // namespace octet::train
