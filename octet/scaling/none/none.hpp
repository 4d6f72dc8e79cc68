#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// No scaling: BF16 operands, BF16 activations.
std::unique_ptr<Recipe> make_bf16(const RecipeOptions&);
/// No scaling: FP32 operands, FP32 activations.
std::unique_ptr<Recipe> make_fp32(const RecipeOptions&);

}  // namespace octet::scaling
