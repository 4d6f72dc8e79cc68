#pragma once

#include "octet/nn/visitor.hpp"
#include "octet/train/step/engine_config.hpp"

namespace octet::train {

/// The chunks of a model that a stage of a pipeline has: ranks.pipeline x ranks.pipeline_chunks parts of consecutive blocks, of which the
/// costliest one, by parallel::layer_costs(), costs as little as possible. Throws ConfigError, naming the rule and what to change, for a
/// model, a number of stages or options that a pipeline does not have.
std::vector<models::Chunk> chunks_of_stage(const EngineConfig&, int stage);

/// Shows the parts of the model of which stages have some, without memory. Throws ConfigError for a family that is not cut into stages.
void visit_whole_model(const EngineConfig&, nn::Visitor&);

}  // namespace octet::train
