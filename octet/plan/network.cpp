#include "octet/plan/network.hpp"

#include <algorithm>
#include <limits>

namespace octet::plan {

struct Network::Place {
  bool one_node = false;
  double members = 1, nodes = 1, nodes_of_leaf = 1;  // m, N, k
  double rails = 1;                                  // d
  bool one_rail = true;                              // the neighbours of a ring on other nodes are on the same rail

  double ring_crossing() const { return !one_rail ? 1 : nodes_of_leaf >= nodes ? 0 : 1 / nodes_of_leaf; }
};

Network::Place Network::place_of(const Group& g) const {
  const std::int64_t n = c_.devices_per_node, members = std::clamp<std::int64_t>(n / g.stride, 1, g.ranks);
  const std::int64_t nodes = (g.ranks + members - 1) / members, distance = std::max<std::int64_t>(1, g.stride / n);
  const machine::Fabric& f = c_.fabric;
  const std::int64_t not_known = f.rails ? std::numeric_limits<std::int64_t>::max() : 1;
  const std::int64_t on_leaf = f.nodes_per_leaf > 0 ? f.nodes_per_leaf : not_known;
  Place p{.one_node = g.stride * g.ranks <= n, .members = double(members), .nodes = double(nodes)};
  p.nodes_of_leaf = double(std::clamp<std::int64_t>(on_leaf / distance, 1, nodes));
  if (!f.rails || f.devices_per_card == n) return p;
  p.rails = double(std::min(members, (members * g.stride + f.devices_per_card - 1) / f.devices_per_card));
  p.one_rail = g.stride % n == 0 || (n % g.stride == 0 && g.stride * g.ranks % n == 0);
  return p;
}

double Network::slowdown(double crossing) const { return std::max(1.0, c_.fabric.oversubscription * crossing); }

double Network::ring(const Group& g) const {
  const Place p = place_of(g);
  return p.one_node ? links() : std::min(links(), p.members * card() / slowdown(p.ring_crossing()));
}

// The last stage of a node sends to the first of the next, whose GPUs have other places unless a node has one stage.
double Network::stages(const Group& g) const {
  Place p = place_of(g);
  if (p.one_node) return links();
  if (c_.fabric.rails && c_.fabric.devices_per_card < c_.devices_per_node) p.one_rail = g.stride % c_.devices_per_node == 0;
  const double x = p.ring_crossing();
  return std::min(links(), p.members * card() / (1 - x + x * slowdown(x)));
}

double Network::exchange(const Group& g, bool relayed) const {
  const Place p = place_of(g);
  if (p.nodes == 1) return card();
  if (!p.one_rail && !relayed) return card() / slowdown(1);
  const double rails = relayed ? 1 : p.rails;
  return card() / slowdown(1 - (p.nodes_of_leaf - 1) / (p.nodes - 1) / rails);
}

}  // namespace octet::plan
