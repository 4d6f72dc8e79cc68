#pragma once

#include <cstdint>
#include <vector>

namespace octet::parallel {

/// Costs of the parts of a model in one unit, such as FLOPs per token.
struct LayerCosts {
  double layer = 1;
  double embedding = 0, head = 0;  // on the first and on the last part
};

/// How many of `layers` equal layers each of `parts` consecutive parts has: at least one, so that the costliest part, embedding and head
/// counted, costs as little as possible; of several such divisions one whose least part has most. Throws ConfigError if layers < parts.
std::vector<std::int64_t> divide_layers(std::int64_t layers, int parts, const LayerCosts&);

/// The cost of the costliest part.
double largest_part(const std::vector<std::int64_t>& division, const LayerCosts&);

}  // namespace octet::parallel
