#include "octet/comm/dry_run/dry_run.hpp"

#include "octet/comm/mpi/workspace.hpp"

namespace octet::comm {

Workspace workspace_of(std::string_view backend) {
  if (backend != "mpi") return nullptr;
  return [](Stream& stream, const Call& call, int ranks) {
    const Scope scope(stream);
    mpi_workspace(stream, call, ranks);
  };
}

void DryRunCommunicator::run(Stream& stream, const Call& call, const Call*) {
  check(stream.device() == Device::null, "{}: planned ranks exchange nothing", to_text(call));
  if (workspace_ != nullptr && size() > 1) workspace_(stream, call, size());
}

}  // namespace octet::comm
