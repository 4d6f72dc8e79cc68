#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/testing/octet.hpp"

namespace octet::testing {

/// The program, begun and not waited for; killed with the object.
class BegunOctet {
 public:
  /// Runs it with the words of `line` in `folder`. Its standard error goes to the file `err`, the rest nowhere.
  /// `program`: another one, such as one that starts it.
  BegunOctet(const std::string& line, const std::string& folder, const std::string& err = "/dev/null",
             const char* program = OCTET_PROGRAM) {
    std::vector<std::string> all = words_of(line);
    std::vector<char*> words{const_cast<char*>(program)};
    for (std::string& word : all) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");  // its number would mean every process
    if (pid_ != 0) return;
    const int none = ::open("/dev/null", O_RDWR), file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(none, 0), ::dup2(none, 1), ::dup2(file, 2);
    if (::chdir(folder.c_str()) == 0) ::execv(words[0], words.data());
    ::_exit(127);
  }
  ~BegunOctet() { signal(SIGKILL), end(); }
  BegunOctet(const BegunOctet&) = delete;
  BegunOctet& operator=(const BegunOctet&) = delete;

  bool running() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return !ended_;
  }
  pid_t process() const { return pid_; }
  /// Does nothing when it has ended: its number may be another process's by now.
  void signal(int number) {
    if (running()) ::kill(pid_, number);
  }
  /// Its exit code, or -1 for a signal's end.
  int end() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, 0) == pid_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace octet::testing
