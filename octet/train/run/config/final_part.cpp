#include "octet/train/run/config/final_part.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octet::train {

std::int64_t steps_before_final_part(const RunConfig& c) {
  if (!scaling::has_final_part(c.recipe)) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t steps = c.steps();
  if (steps == 0)
    throw ConfigError(
        "recipe.final begins at a share of the steps, whose number train.max_seconds does not tell: set train.steps or train.tokens, too");
  return steps - std::max<std::int64_t>(1, std::llround(c.recipe.final_share * double(steps)));
}

std::string recipe_of_step(const RunConfig& c, std::int64_t step) {
  return step > steps_before_final_part(c) ? c.recipe.final_recipe : c.recipe.recipe;
}

EngineConfig engine_config(const RunConfig& c, const std::string& recipe) {
  EngineConfig out = engine_config(c);
  out.precision.final_recipe = recipe;
  if (recipe != c.recipe.recipe) out.precision = scaling::final_part(out.precision);
  else out.precision.final_recipe = c.recipe.final_recipe;
  return out;
}

}  // namespace octet::train
