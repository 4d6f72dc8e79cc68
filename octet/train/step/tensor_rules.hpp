#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Throws ConfigError, naming the rule and the nearest number of ranks that keeps all of them, unless so many ranks can divide each layer
/// of this run's model (models::broken_division) and rows of its sequences, sequence % n = 0, and for options that a tensor group does not
/// have. Source: Korthikanti et al. 2022 for sequences.
void require_tensor(const EngineConfig&, std::int64_t ranks);

/// Throws ConfigError where a variable of these parts of parameters has a scale per 128 values, and a part does not have whole blocks of
/// the whole parameter: its codes would not be those of one rank.
void require_whole_blocks(const nn::Parameters&, const optim::StateStorage&);

}  // namespace octet::train
