#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// 1x32 blocks with E8M0 descales rounded up, E4M3, both orientations from the source.
/// Source: OCP MX 1.0; Transformer Engine, MXFP8BlockScaling; Mishra et al. 2025 (rounding).
std::unique_ptr<Recipe> make_mxfp8(const RecipeOptions&);

}  // namespace octet::scaling
