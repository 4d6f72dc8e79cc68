#pragma once

#include "octet/config/fields.hpp"

namespace octet::machine {

/// How network cards and switches connect nodes. Defaults: one card per device, and switches that pass on the rate of all cards.
///
/// Leaf switches connect cards. The spine connects leaf switches, at the rate of their cards over `oversubscription`. Without rails a leaf
/// has all cards of its nodes. With rails card i of each of its nodes is on the leaf i:
///
///   nodes     leaves                nodes     leaves of rails
///   0 1 2 3   [0 1 2 3]             0 1 2 3   [card 0 of each] [card 1 of each] ...
///   4 5 6 7   [4 5 6 7]  spine      4 5 6 7   [card 0 of each] [card 1 of each] ...  spine
struct Fabric {
  std::int64_t devices_per_card = 1;
  bool rails = false;
  std::int64_t nodes_per_leaf = 0;  // 0, not known: one node, or with rails all nodes
  double oversubscription = 1;      // cards of a leaf over its links to the spine

  void fields(config::FieldVisitor&);
  bool blocks() const { return oversubscription > 1; }
};

/// Throws ConfigError where devices of a node cannot share its cards equally. `asked`: the file or options, for its text.
void require_equal_shares(const Fabric&, std::int64_t devices_per_node, const std::string& asked);

}  // namespace octet::machine
