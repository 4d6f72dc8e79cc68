#include "octet/bench/network.hpp"

#include <algorithm>

#include "octet/base/host_name.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::bench {
namespace {

using comm::Communicator;

// Where a rank is among nodes, by their first ranks' order.
struct Spot {
  int node = 0, member = 0, nodes = 0;
};

Spot spot_of(const std::vector<std::string>& hosts, int rank) {
  std::vector<std::string> names;
  std::vector<int> members;
  Spot out;
  for (int r = 0; r < int(hosts.size()); ++r) {
    const auto at = std::size_t(std::find(names.begin(), names.end(), hosts[std::size_t(r)]) - names.begin());
    if (at == names.size()) names.push_back(hosts[std::size_t(r)]), members.push_back(0);
    if (r == rank) out = {.node = int(at), .member = members[at]};
    ++members[at];
  }
  if (std::ranges::min(members) != std::ranges::max(members))
    throw ConfigError(format("--calibrate: {} has {} ranks and another node {}; start equally many on each node", printable(names[0]),
                             members[0], members[0] == std::ranges::min(members) ? std::ranges::max(members) : std::ranges::min(members)));
  out.nodes = int(names.size());
  return out;
}

// Bytes per second of the slowest of all ranks, which sum in groups at the same time.
double rate_of(Stream& stream, Communicator& all, Communicator& group, Device device, const AllReduceOptions& options) {
  if (group.size() == 1) return 0;
  const std::int64_t bytes = *std::max_element(options.bytes.begin(), options.bytes.end());
  all.barrier(stream);
  const double own = measure_sum(group, device, Wire::f32, bytes, options.effort).bus_rate();
  return std::ranges::min(parallel::gathered(stream, all, std::span(&own, 1)));
}

NetworkRates measured(Communicator& comm, Device device, const AllReduceOptions& options) {
  Stream stream(device);
  const Spot spot = spot_of(parallel::gathered(stream, comm, host_name()), comm.rank());
  const int per_node = comm.size() / spot.nodes;
  const auto node = comm.split(spot.node, spot.member, per_node), across = comm.split(spot.member, spot.node, spot.nodes);
  NetworkRates out{.ranks = comm.size(), .nodes = spot.nodes, .reports = comm.rank() == 0};
  out.link = rate_of(stream, comm, *node, device, options);
  out.network = rate_of(stream, comm, *across, device, options);
  return out;
}

}  // namespace

NetworkRates measure_network(const AllReduceOptions& options) {
  return machine::result_on_ranks(rank_wish(options), [&](Communicator& comm, const machine::RankPlacement& placement) {
    return measured(comm, placement.device, options);
  });
}

}  // namespace octet::bench
