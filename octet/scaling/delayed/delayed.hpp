#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// A scale per tensor, from the maxima of past steps: max or most recent of a history, hybrid formats. Encodes in one pass, since the
/// scale is known before the values are. Source: Transformer Engine, DelayedScaling.
std::unique_ptr<Recipe> make_delayed(const RecipeOptions&);

}  // namespace octet::scaling
