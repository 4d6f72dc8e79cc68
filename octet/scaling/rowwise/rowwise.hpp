#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// A power-of-two scale (an FP32 one by RecipeOptions::scale) per row of each operand (so a token, an output feature, and in the weight
/// gradient a feature), E4M3 throughout. Source: torchao, float8 recipe "rowwise".
std::unique_ptr<Recipe> make_rowwise(const RecipeOptions&);

}  // namespace octet::scaling
