#pragma once

#include "octet/machine/constants.hpp"

namespace octet::plan {

/// The ranks of an axis, `stride` ranks apart. Ranks fill node by node, and nodes leaf by leaf.
struct Group {
  std::int64_t stride = 1, ranks = 1;
};

/// The rates of a machine's links and network, by where the members of a group lie. All groups of an axis exchange at one time, so each GPU
/// has its share of the node's cards.
///
///   m   members on a node: devices_per_node / stride, from 1 to the group's ranks
///   N   nodes of the group: ranks / m, which are stride / devices_per_node apart, at least 1
///   k   its nodes on one leaf switch: nodes_per_leaf over that distance, from 1 to N
///   o   oversubscription
///   x   the part of what leaves a node that crosses the spine
///
///   ring       x = 1 / k, since one node of k has its successor on another leaf; 0 where k = N
///   stages     x as in a ring; those of a node come before those of the next
///   exchange   x = 1 - (k - 1) / (N - 1) / d: of N - 1 other nodes, k - 1 are on this leaf
///   on rails   rings and stages whose neighbours are on different rails: x = 1. A node's members are on d rails, between which an exchange
///              crosses the spine, too, unless its rows are relayed within nodes. Without rails d = 1.
///
/// A leaf's links to the spine have 1 / o of the rate of its cards, so a GPU sends network_gbs / max(1, o x) to other nodes. In a ring of m
/// members per node m GPUs share this work: the rate is m times as large, and at most that of links. Of stages only the hops that cross the
/// spine are slower.
class Network {
 public:
  explicit Network(const machine::MachineConstants& c) : c_(c) {}

  /// Bytes per second that each member sends in sums and gathers, whose bytes travel along a ring.
  double ring(const Group&) const;
  /// From one member to the next, mean of all hops.
  double stages(const Group&) const;
  /// To members on other nodes, with an equal part for each. `relayed`: rows go to the device with the same place on the other node first.
  double exchange(const Group&, bool relayed) const;
  /// Within a node.
  double links() const { return c_.link_gbs * 1e9; }

 private:
  struct Place;
  Place place_of(const Group&) const;
  double card() const { return c_.network_gbs * 1e9; }
  double slowdown(double crossing) const;

  const machine::MachineConstants& c_;
};

}  // namespace octet::plan
