#pragma once

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// Rank 0 of a number of ranks that are not there: a step on the null device counts its calls and bytes. Throws ContractError on other
/// devices.
class PlannedCommunicator final : public Communicator {
 public:
  explicit PlannedCommunicator(int ranks) : Communicator(0, ranks) {}
  /// As many ranks of each color: a plan does not know the colors of others, unless it is told their number.
  std::unique_ptr<Communicator> split(int, int) override { return std::make_unique<PlannedCommunicator>(size()); }
  std::unique_ptr<Communicator> split(int, int, int size) override { return std::make_unique<PlannedCommunicator>(size); }

 private:
  void run(Stream&, const Call&, const Call*) override;
};

}  // namespace octet::comm
