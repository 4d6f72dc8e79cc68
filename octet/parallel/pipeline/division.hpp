#pragma once

#include <cstdint>
#include <vector>

namespace octet::parallel {

/// Costs of the parts of a model in one unit, such as FLOPs per token.
struct LayerCosts {
  double layer = 1;
  double embedding = 0, head = 0;  // on the first and on the last part
};

/// Products per token of a part of a model, by the operands as the device multiplies them: codes that it decodes first count as 16 bits.
struct Products {
  double in_8_bits = 0, in_16_bits = 0;
  double cost() const { return in_8_bits + 2 * in_16_bits; }  // tensor cores multiply codes twice as fast
};

/// Of a model: products with the parameters of each block and of the head, and with scores of attention in 16 bits, `score_columns` per
/// token before it. Half of the sequence is before a token, and a score is used twice. Where blocks differ, `layer` is their median, and
/// the rest of each is added to the nearer end.
LayerCosts layer_costs(const std::vector<Products>& blocks, const Products& head, double sequence, double score_columns);

/// How many of `layers` equal layers each of `parts` consecutive parts has: at least one, so that the costliest part, embedding and head
/// counted, costs as little as possible; of several such divisions one whose least part has most. Throws ConfigError if layers < parts.
std::vector<std::int64_t> divide_layers(std::int64_t layers, int parts, const LayerCosts&);

}  // namespace octet::parallel
