#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// How a pipeline divides the model, and what its stages send, as rows of the plan; none without a pipeline.
std::vector<scaling::PlanRow> plan_of_stages(Engine&, const EngineConfig&);

}  // namespace octet::train
