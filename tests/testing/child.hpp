#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/testing/scratch.hpp"

namespace octet::testing {

/// A child process that has ended.
struct Ended {
  int code = 0;  // its exit code; -1 when a signal ended it
  std::string out, err;
  double seconds = 0;  // of wall time
  double processor_seconds = 0;
  double peak_bytes = 0;  // resident, at most; not less than its parent had when it was made
};

/// Runs the program words[0] with the arguments that follow, in `folder`, without input; kills it after `seconds`. Throws
/// std::runtime_error when it cannot start.
inline Ended run_child(const std::vector<std::string>& words, const std::string& folder, double seconds = 600) {
  const Scratch streams;
  const std::string out = streams.at("out"), err = streams.at("err");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const auto begin = std::chrono::steady_clock::now();
  const int refused = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) throw std::runtime_error("cannot run " + words[0]);
  const int handle = int(::syscall(SYS_pidfd_open, child, 0));
  pollfd ended{handle, POLLIN, 0};
  if (handle >= 0 && ::poll(&ended, 1, int(seconds * 1e3)) == 0) ::kill(child, SIGKILL);
  if (handle >= 0) ::close(handle);
  int status = 0;
  rusage used{};
  if (::wait4(child, &status, 0, &used) != child) throw std::runtime_error("cannot wait for " + words[0]);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto seconds_of = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          bytes_of(out),
          bytes_of(err),
          took.count(),
          seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
          double(used.ru_maxrss) * 1024};
}

}  // namespace octet::testing
