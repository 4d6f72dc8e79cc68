#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// One E4M3 scale for every tensor of the model, from the largest magnitude of the last step: the strawman of Micikevicius et al. 2022,
/// "FP8 Formats for Deep Learning", kept to show why each tensor needs its own.
std::unique_ptr<Recipe> make_global(const RecipeOptions&);

}  // namespace octet::scaling
