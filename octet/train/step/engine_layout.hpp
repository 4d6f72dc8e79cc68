#pragma once

#include "octet/train/layout/constraints.hpp"
#include "octet/train/step/engine_config.hpp"

namespace octet::train {

/// The ranks of an engine and the model that they divide, as rules read them. `groups`: of ranks that each have sequences of their own.
Layout layout_of(const EngineConfig&, std::int64_t groups);
Subject subject_of(const EngineConfig&, std::int64_t groups);

}  // namespace octet::train
