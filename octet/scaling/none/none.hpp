#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// No scaling: BF16 operands, BF16 activations.
std::unique_ptr<Recipe> make_bf16(const RecipeOptions&);
/// No scaling of operands: FP16 operands, FP16 activations, whose small gradients need a loss scale. Source: Micikevicius et al. 2018,
/// "Mixed Precision Training", sections 3.1 and 3.2.
std::unique_ptr<Recipe> make_fp16(const RecipeOptions&);
/// No scaling: FP32 operands, FP32 activations.
std::unique_ptr<Recipe> make_fp32(const RecipeOptions&);

}  // namespace octet::scaling
