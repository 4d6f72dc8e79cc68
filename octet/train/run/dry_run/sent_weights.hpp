#pragma once

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// How the copies of divided weights travel between ranks, as rows of the plan: codes that GEMMs read, or values, with the reason and the
/// layers of each. Empty where nothing is divided.
std::vector<scaling::PlanRow> plan_of_sent_weights(Engine&, const EngineConfig&);

}  // namespace octet::train
