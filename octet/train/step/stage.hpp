#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// The chunks of a model that a stage of a pipeline has: ranks.pipeline x ranks.chunks parts of consecutive blocks, of which the costliest
/// one, counted in parameters that a token is multiplied with, costs as little as possible. Throws ConfigError, naming the rule and what to
/// change, for a model, a number of stages or options that a pipeline does not have.
std::vector<models::Chunk> chunks_of_stage(const EngineConfig&, int stage);

}  // namespace octet::train
