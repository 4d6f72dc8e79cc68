#pragma once

#include <algorithm>

#include "octet/tensor/parameter.hpp"

namespace octet {

/// The slice of a parameter that an optimizer updates: all of it, or the values of it in the own part of its bucket, maybe none.
struct ParameterSlice {
  Parameter* parameter = nullptr;
  std::int64_t first = 0;     // its first element in the parameter, a multiple of 128
  Stored value, gradient;     // [n] of a part, otherwise of the parameter's shape; `value` is the master
  const Cut* copy = nullptr;  // of a parameter without a cut that another owner counts and saves: the cut of that copy
  /// The place of the parameter's values in the whole.
  const Cut& cut() const { return copy != nullptr ? *copy : parameter->cut; }
  /// The first values, which are counted here: others are copies that another owner of the parameter counts.
  std::int64_t counted() const { return std::clamp<std::int64_t>(cut().counted(parameter->shape.count()) - first, 0, value.count()); }
  bool whole() const { return value.count() == parameter->shape.count(); }
};
/// The slice that is all of it.
inline ParameterSlice whole_slice(Parameter& p) { return {.parameter = &p, .value = p.value, .gradient = p.gradient.stored()}; }

}  // namespace octet
