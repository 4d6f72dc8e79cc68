#pragma once

#include <optional>

#include "octet/io/tensor_folder.hpp"
#include "octet/numerics/scale.hpp"

namespace octet::models {

/// By which rule the scales of a folder's codes were made: power_of_two if all of them are powers of two, else quotient; none in a folder
/// without codes. So an export of the folder has its scales again.
std::optional<ScaleRule> rule_of_scales(const io::TensorFolder&);

}  // namespace octet::models
