#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace octet {

/// Exit codes of the `octet` program; `docs/errors.md` is their list for users.
enum class ExitCode : int {
  done = 0,
  usage = 2,         // command line or configuration
  gap = 3,           // `compare`: a recipe missed its tolerance
  data = 64,         // a user's file is damaged, truncated or of the wrong kind
  device = 69,       // the machine lacks memory, an instruction set or a GPU
  internal = 70,     // a caller inside Octet broke an op's contract
  io = 74,           // the operating system refused to read or write
  interrupted = 75,  // stopped by a signal
  ranks = 76,        // another rank is lost, late or called something else
  diverged = 90,     // too many non-finite steps in a row
};

/// Every error that Octet throws: one sentence (who, the expected value, the actual value, where, the remedy) and an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// A caller broke an op's contract.
struct ContractError : Error {
  explicit ContractError(const std::string& what) : Error(ExitCode::internal, what) {}
};
/// An invalid configuration or command line; the message has the remedy.
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(ExitCode::usage, what) {}
};
/// An invalid file; the message names the file and, if known, the offset.
struct DataError : Error {
  explicit DataError(const std::string& what) : Error(ExitCode::data, what) {}
};
/// Calls read() and adds `remedy` to its DataError, once: a parser knows the defect, its caller the purpose of the file.
template <class Read>
auto with_remedy(std::string_view remedy, Read read) {
  try {
    return read();
  } catch (const DataError& e) {
    const std::string what = e.what();
    if (what.find(remedy) != what.npos) throw;
    throw DataError(what + "; " + std::string(remedy));
  }
}
/// The operating system refused; the message names the path and the reason.
struct IoError : Error {
  explicit IoError(const std::string& what) : Error(ExitCode::io, what) {}
};
/// The machine cannot run this; the message names the missing part.
struct DeviceError : Error {
  explicit DeviceError(const std::string& what) : Error(ExitCode::device, what) {}
};
/// Training diverged: too many non-finite steps in a row.
struct DivergedError : Error {
  explicit DivergedError(const std::string& what) : Error(ExitCode::diverged, what) {}
};

}  // namespace octet
