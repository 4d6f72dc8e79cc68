#include "octet/launch/process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::launch {
namespace {

// In the new process; does not return.
[[noreturn]] void become(const Start& s, const sigset_t& mask, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  if (s.own_group) ::setpgid(0, 0);
  const int none = ::open("/dev/null", O_RDONLY);
  if (none > STDIN_FILENO) ::dup2(none, STDIN_FILENO), ::close(none);
  if (s.output >= 0) ::dup2(s.output, STDOUT_FILENO);
  if (s.error >= 0) ::dup2(s.error, STDERR_FILENO);
  for (const std::string& name : s.removed) ::unsetenv(name.c_str());
  for (const auto& [name, value] : s.variables) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words{const_cast<char*>(s.program == this_program ? "octet" : s.program.c_str())};
  for (const std::string& word : s.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execv(s.program.c_str(), words.data());
  std::fprintf(stderr, "octet: cannot execute '%s': %s\n", s.program.c_str(), std::strerror(errno));
  ::_exit(127);
}

}  // namespace

pid_t start(const Start& s, const sigset_t& mask) {
  const pid_t self = ::getpid();
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0)
    throw DeviceError(
        format("cannot start '{}': {}; raise the limit of processes (ulimit -u)", printable(s.program), std::strerror(errno)));
  if (child == 0) become(s, mask, self);
  return child;
}

std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code ignored;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, ignored)) return file;
  }
  return "";
}

}  // namespace octet::launch
