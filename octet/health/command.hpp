#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace octet::health {

/// Starts a program for each message, which is its standard input. Its output is discarded. The program is found in PATH and gets the
/// configured arguments alone: no shell reads them, and nothing of a message is part of them.
///
/// send() never waits for a program. At most `most_running` run at once, at most `most_waiting` messages wait, and further ones are
/// dropped. A program that runs for longer than `seconds` is killed with its process group. The first failure of any kind is passed
/// to `warn`, in the thread of the next send() or of finish(); later ones are silent.
class Command {
 public:
  static constexpr std::size_t most_running = 4, most_waiting = 64;

  /// Throws ConfigError naming alerts.command if PATH has no such program. `words` is not empty.
  Command(std::vector<std::string> words, double seconds, std::function<void(const std::string&)> warn);
  /// As finish().
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  void send(std::string message);
  /// Waits until all messages are delivered, for at most `seconds`; then programs are killed.
  void finish();

 private:
  struct Running {
    pid_t process;
    double deadline;
  };
  void run(const std::stop_token&);
  void start(const std::string& message);
  void reap(double now);
  void fail(const std::string& why);
  void tell();

  const std::vector<std::string> words_;
  const double seconds_;
  const std::function<void(const std::string&)> warn_;
  std::vector<Running> running_;  // of the thread alone

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::string> waiting_;  // guarded by mutex_, as all below
  std::size_t unfinished_ = 0;       // waiting and running
  std::string failure_;
  bool failed_ = false, told_ = false;
  std::jthread thread_;  // begins with the first message; last: it uses the others
};

/// Throws ConfigError unless PATH has the program of alerts.command: before a run makes its folder.
void require_program(const std::vector<std::string>& words);

}  // namespace octet::health
