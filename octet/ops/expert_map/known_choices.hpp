#pragma once

#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::ops {

/// The same of so many choices in all, wherever they are: rows for every way to divide them among E experts.
std::int64_t rows_of_choices(std::int64_t choices, std::int64_t experts, std::int64_t tile);

/// expert_map() where the host knows that at most so many of `chosen` are experts, the others being -1: the map has rows_of_choices() of
/// them at least, not rows for all T K. On the CPU more choices throw ContractError.
void expert_map(Stream&, const Tensor& chosen, const ExpertMap&, std::int64_t choices);

}  // namespace octet::ops
