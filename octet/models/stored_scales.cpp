#include "octet/models/stored_scales.hpp"

#include <algorithm>
#include <vector>

#include "octet/models/weight_codes.hpp"

namespace octet::models {

std::optional<ScaleRule> rule_of_scales(const io::TensorFolder& files) {
  std::optional<ScaleRule> out;
  for (const std::string_view name : files.names()) {
    if (!name.ends_with("weight_scale") && !name.ends_with("weight_scale_inv")) continue;
    const io::TensorView scales = files.tensor(name);
    if (!out) out = ScaleRule::power_of_two;
    if (scales.dtype == io::StoredDType::e8m0) continue;
    const std::vector<float> values = io::to_f32(scales);
    if (!std::ranges::all_of(values, is_power_of_two)) return ScaleRule::quotient;
  }
  return out;
}

}  // namespace octet::models
