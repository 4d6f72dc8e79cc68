#pragma once

#include "octet/bench/all_reduce.hpp"

namespace octet::bench {

/// Rates at which ranks send, bytes per second and rank: of sums among the ranks of a node, and of sums among one rank of each node, of
/// which all ranks of a node run one at the same time. So ranks that share a network card share its rate.
struct NetworkRates {
  int ranks = 1, nodes = 1;
  bool reports = true;           // false on processes other than that of rank 0
  double link = 0, network = 0;  // 0: there are no two such ranks

  int per_node() const { return ranks / nodes; }
};

/// On the ranks of machine::on_ranks(), with tensors of the largest of plan.bytes. Ranks of one host name are a node. Throws ConfigError
/// where nodes have different numbers of ranks, and as measure_all_reduce().
NetworkRates measure_network(const AllReduceOptions&);

}  // namespace octet::bench
