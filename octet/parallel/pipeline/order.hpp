#pragma once

#include "octet/parallel/pipeline/schedule.hpp"

namespace octet::parallel {

/// The computing actions of every stage in order, without transfers. `shape` is valid.
std::vector<StageActions> compute_order(Schedule, const PipelineShape& shape);
/// The same of actions_in_turn().
std::vector<StageActions> order_in_turn(const PipelineShape& shape);

}  // namespace octet::parallel
