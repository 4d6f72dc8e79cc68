#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// 1x128 blocks for activations and gradients, 128x128 for weights, power-of-two scales (FP32 ones by RecipeOptions::scale), E4M3;
/// transposed copies are quantized from the source. Source: DeepSeek-V3, section 3.3; Transformer Engine, Float8BlockScaling.
std::unique_ptr<Recipe> make_block128(const RecipeOptions&);

}  // namespace octet::scaling
