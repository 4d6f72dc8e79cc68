#pragma once

#include <string_view>

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// Takes the memory that a backend needs for a call of so many ranks from the stream's scratch, and gives it back.
using Workspace = void (*)(Stream&, const Call&, int ranks);
/// Of "mpi"; null for other backends, which need none.
Workspace workspace_of(std::string_view backend);

/// One of a number of ranks that are not there: a step on the null device counts its calls and bytes. Throws ContractError on other
/// devices.
class DryRunCommunicator final : public Communicator {
 public:
  explicit DryRunCommunicator(int ranks, int rank = 0, Workspace workspace = nullptr) : Communicator(rank, ranks), workspace_(workspace) {}
  /// As many ranks of each color: a plan does not know the colors of others, unless it is told their number. Their keys are then 0, 1, ...
  std::unique_ptr<Communicator> split(int, int) override { return split(0, rank(), size()); }
  std::unique_ptr<Communicator> split(int, int key, int size) override {
    return std::make_unique<DryRunCommunicator>(size, key, workspace_);
  }

 private:
  void run(Stream&, const Call&, const Call*) override;

  Workspace workspace_;
};

}  // namespace octet::comm
