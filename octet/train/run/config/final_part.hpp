#pragma once

#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The steps of a run before those of recipe.final: all but recipe.final_share of them, which is at least one step. A number that no run
/// reaches where there is no final part. Throws ConfigError if the number of steps is not known.
std::int64_t steps_before_final_part(const RunConfig&);
/// The recipe that trains step `step`, from 1 on: recipe.final, or recipe.name before the final part. A checkpoint of a step has the state
/// of that step's recipe.
std::string recipe_of_step(const RunConfig&, std::int64_t step);

/// The configuration of a run's engine while it trains by this recipe.
EngineConfig engine_config(const RunConfig&, const std::string& recipe);

}  // namespace octet::train
