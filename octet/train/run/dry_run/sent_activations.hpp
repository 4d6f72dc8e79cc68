#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// How activations and their gradients travel between the ranks that divide each layer or each sequence, as rows of the plan, with the
/// reason and the layers of each. Empty where no rank does.
std::vector<scaling::PlanRow> plan_of_sent_activations(Engine&, const EngineConfig&);

}  // namespace octet::train
