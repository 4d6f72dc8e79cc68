#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// A scale per tensor, from its own maximum, just before encoding: FP32 quotient, hybrid formats. No state.
/// Source: Transformer Engine, Float8CurrentScaling.
std::unique_ptr<Recipe> make_current(const RecipeOptions&);

}  // namespace octet::scaling
