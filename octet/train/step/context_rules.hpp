#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Throws ConfigError, naming the rule and the nearest number of ranks that keeps it, unless sequence_length % 2n = 0: each of n ranks
/// has two segments of each sequence. Also for options that such ranks do not have. Source: Llama Team 2024, "The Llama 3
/// Herd of Models", section 3.3.2.
void require_context(const EngineConfig&, std::int64_t ranks);

}  // namespace octet::train
