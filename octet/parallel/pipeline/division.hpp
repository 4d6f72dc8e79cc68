#pragma once

#include <cstdint>
#include <vector>

namespace octet::parallel {

/// Costs of the parts of a model in one unit, such as FLOPs per token.
struct LayerCosts {
  double layer = 1;
  double embedding = 0, head = 0;  // on the first and on the last part
};

/// Of a model, in products per token: parameters of a layer and of the head, each of which a token is multiplied with, and scores of
/// attention, `score_columns` per token before it. Half of the sequence is before a token, and a score is used twice.
constexpr LayerCosts layer_costs(double layer_parameters, double head_parameters, double sequence, double score_columns) {
  return {.layer = layer_parameters + sequence * score_columns, .embedding = 0, .head = head_parameters};
}

/// How many of `layers` equal layers each of `parts` consecutive parts has: at least one, so that the costliest part, embedding and head
/// counted, costs as little as possible; of several such divisions one whose least part has most. Throws ConfigError if layers < parts.
std::vector<std::int64_t> divide_layers(std::int64_t layers, int parts, const LayerCosts&);

/// The cost of the costliest part.
double largest_part(const std::vector<std::int64_t>& division, const LayerCosts&);

}  // namespace octet::parallel
