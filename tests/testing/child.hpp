#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/testing/scratch.hpp"

namespace octet::testing {

/// A child process that has ended.
struct Ended {
  int code = 0;  // its exit code; -1 when a signal ended it
  std::string out, err;
};

/// Runs the program words[0] with the arguments that follow, in `folder`, without input. Throws std::runtime_error when it cannot start.
inline Ended run_child(const std::vector<std::string>& words, const std::string& folder) {
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
  const int refused = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (refused != 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot run " + words[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
}

}  // namespace octet::testing
