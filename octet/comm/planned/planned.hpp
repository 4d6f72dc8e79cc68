#pragma once

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// One of a number of ranks that are not there: a step on the null device counts its calls and bytes. Throws ContractError on other
/// devices.
class PlannedCommunicator final : public Communicator {
 public:
  explicit PlannedCommunicator(int ranks, int rank = 0) : Communicator(rank, ranks) {}
  /// As many ranks of each color: a plan does not know the colors of others, unless it is told their number. Their keys are then 0, 1, ...
  std::unique_ptr<Communicator> split(int, int) override { return std::make_unique<PlannedCommunicator>(size(), rank()); }
  std::unique_ptr<Communicator> split(int, int key, int size) override { return std::make_unique<PlannedCommunicator>(size, key); }

 private:
  void run(Stream&, const Call&, const Call*) override;
};

}  // namespace octet::comm
