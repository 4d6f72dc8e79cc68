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
  data = 64,         // a file of the user's is damaged, truncated or of the wrong kind
  device = 69,       // this machine cannot do what was asked: too little memory, missing instruction set
  internal = 70,     // a caller inside Octet broke an op's contract
  io = 74,           // the operating system refused to read or write
  interrupted = 75,  // stopped by a signal
  diverged = 90,     // too many non-finite steps in a row
};

/// Every error that Octet throws: one sentence (who, what was wanted, what came, where), and whose fault it is.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The caller's fault: an op's stated contract was broken.
struct ContractError : Error {
  explicit ContractError(const std::string& what) : Error(ExitCode::internal, what) {}
};
/// The user's fault, in a configuration or on the command line; says how to mend it.
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(ExitCode::usage, what) {}
};
/// A file's fault; names the file and, where there is one, the offset.
struct DataError : Error {
  explicit DataError(const std::string& what) : Error(ExitCode::data, what) {}
};
/// read(), whose DataError then ends with the remedy: a parser knows what is wrong, its caller what the file is for. A remedy that the
/// message has already is not added again.
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
/// The operating system's fault; names the path and the reason.
struct IoError : Error {
  explicit IoError(const std::string& what) : Error(ExitCode::io, what) {}
};
/// This machine cannot do it; says what it lacks.
struct DeviceError : Error {
  explicit DeviceError(const std::string& what) : Error(ExitCode::device, what) {}
};
/// Training went wrong beyond repair.
struct DivergedError : Error {
  explicit DivergedError(const std::string& what) : Error(ExitCode::diverged, what) {}
};

}  // namespace octet
