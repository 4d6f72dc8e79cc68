#pragma once

#include "octet/cli/command.hpp"
#include "octet/machine/constants.hpp"

namespace octet::cli {

/// The options of octet plan --gpus about cards and switches between nodes. Those that are not given are the machine's.
struct NetworkOptions {
  std::string rate;  // GB/s per GPU, or cards per node x GB/s of each
  bool rails = false;
  std::int64_t nodes_per_leaf = 0;
  double oversubscription = 0;

  void add_to(Command&);
  /// Into the constants of a machine whose GPUs per node are known. Throws ConfigError for numbers that make no sense together.
  void apply(machine::MachineConstants&) const;
};

/// "25 GB/s to other nodes per GPU (200 per node: 4 cards of 50)", and the switches where they do not pass on all of it.
std::string network_text(const machine::MachineConstants&);
/// The assumptions about a network between nodes that the user has not set, with their options.
std::vector<std::string> assumed_network(const machine::MachineConstants&, const std::vector<std::string>& given);

}  // namespace octet::cli
