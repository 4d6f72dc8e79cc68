#pragma once

#include <string>

#include "octet/comm/communicator.hpp"

namespace octet::train {

/// Writes the last calls of this rank into collectives-<rank>.json of a run's folder, after ranks have lost each other. A file that cannot
/// be written is a warning: the run ends in any case.
void write_last_calls(const std::string& run_folder, const comm::Communicator&);

/// Does so at its end, if that is by an exception.
class CallLogFile {
 public:
  CallLogFile(const std::string& run_folder, const comm::Communicator& ranks);
  ~CallLogFile();
  CallLogFile(const CallLogFile&) = delete;

 private:
  const std::string& folder_;
  const comm::Communicator& ranks_;
  int exceptions_;
};

}  // namespace octet::train
