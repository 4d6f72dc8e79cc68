#include "octet/machine/fabric.hpp"

#include "octet/base/check.hpp"

namespace octet::machine {

void Fabric::fields(config::FieldVisitor& v) {
  v.field("devices_per_card", devices_per_card, "devices of a node that share a network card, and the rate of network_gbs is of each",
          {.at_least = 1});
  v.field("rails", rails, "a leaf switch has card i of its nodes; otherwise it has all cards of its nodes");
  v.field("nodes_per_leaf", nodes_per_leaf, "nodes that a leaf switch connects; 0: not known, so one, or with rails all", {.at_least = 0});
  v.field("oversubscription", oversubscription, "rate of the cards of a leaf switch over that of its links to the spine; 1: non-blocking",
          {.at_least = 1, .at_most = 1000});
}

void require_equal_shares(const Fabric& f, std::int64_t devices_per_node, const std::string& asked) {
  if (devices_per_node % f.devices_per_card != 0)
    throw ConfigError(
        format("{}: a node's {} devices cannot share cards equally of which each has {}; set devices_per_node to a multiple, or "
               "fabric.devices_per_card to a divisor",
               asked, devices_per_node, f.devices_per_card));
}

}  // namespace octet::machine
