#include "octet/launch/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "octet/base/clock.hpp"
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

std::string output_of(Start s, double seconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw DeviceError(format("cannot make a pipe: {}", std::strerror(errno)));
  s.output = ends[1];
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  const pid_t child = start(s, mask);
  ::close(ends[1]);
  std::string text;
  const double until = monotonic_seconds() + seconds;
  pollfd ready{ends[0], POLLIN, 0};
  char bytes[4096];
  for (double left = seconds; left > 0; left = until - monotonic_seconds()) {
    if (::poll(&ready, 1, int(left * 1000) + 1) <= 0) continue;
    const ssize_t n = ::read(ends[0], bytes, sizeof bytes);
    if (n <= 0 && errno != EINTR) break;
    if (n > 0) text.append(bytes, std::size_t(n));
    if (n == 0) break;
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return text;
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
