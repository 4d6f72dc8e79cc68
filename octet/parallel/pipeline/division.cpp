#include "octet/parallel/pipeline/division.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "octet/base/check.hpp"

namespace octet::parallel {
namespace {

double ends(int part, int parts, const LayerCosts& c) { return (part == 0 ? c.embedding : 0) + (part + 1 == parts ? c.head : 0); }

}  // namespace

LayerCosts layer_costs(const std::vector<Products>& blocks, const Products& head, double sequence, double score_columns) {
  std::vector<double> costs;
  for (const Products& b : blocks) costs.push_back(b.cost() + Products{.in_16_bits = sequence * score_columns}.cost());
  std::vector<double> sorted = costs;
  std::ranges::sort(sorted);
  LayerCosts out{.layer = sorted[sorted.size() / 2], .head = head.cost()};
  for (std::size_t i = 0; i < costs.size(); ++i) (2 * i < costs.size() ? out.embedding : out.head) += costs[i] - out.layer;
  return out;
}

// Each layer is added to the part that then costs least: no other division has a smaller maximum, because layers are equal.
std::vector<std::int64_t> divide_layers(std::int64_t layers, int parts, const LayerCosts& costs) {
  if (layers < parts)
    throw ConfigError(
        format("{} layers cannot be divided into {} parts of a pipeline: choose at most {} stages x chunks", layers, parts, layers));
  std::vector<std::int64_t> out(std::size_t(parts), 1);
  const auto cost = [&](int part) { return double(out[std::size_t(part)]) * costs.layer + ends(part, parts, costs); };
  using Next = std::pair<double, int>;  // of equal costs the first part
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (int part = 0; part < parts; ++part) next.emplace(cost(part), part);
  for (std::int64_t left = layers - parts; left > 0; --left) {
    const int best = next.top().second;
    ++out[std::size_t(best)], next.pop(), next.emplace(cost(best), best);
  }
  return out;
}

}  // namespace octet::parallel
