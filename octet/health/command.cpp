#include "octet/health/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "octet/base/clock.hpp"
#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::health {
namespace {

using namespace std::chrono_literals;
constexpr auto look_again = 20ms;  // while programs run

bool executable(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

bool in_path(const std::string& program) {
  if (program.find('/') != program.npos) return executable(program);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (executable((folder.empty() ? "." : folder) + "/" + program)) return true;
  return false;
}

/// A file in memory with that content, read from its begin: a program that does not read it blocks nothing.
Descriptor file_with(const std::string& content) {
  const int number = ::memfd_create("octet-alert", MFD_CLOEXEC);
  if (number < 0) return {};
  Descriptor file("/proc/self/fd/" + std::to_string(number), O_RDWR);
  ::close(number);
  for (std::size_t written = 0; file.ok() && written < content.size();) {
    const ssize_t n = ::write(file.number(), content.data() + written, content.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    written += std::size_t(n);
  }
  if (file.ok()) ::lseek(file.number(), 0, SEEK_SET);
  return file;
}

/// A process group of its own, no blocked signals, and only the three standard descriptors. Returns 0 or the reason.
int spawn(const std::vector<std::string>& words, int input, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files), posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) posix_spawn_file_actions_addopen(&files, output, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none), posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int reason = ::posix_spawnp(&process, arguments[0], &files, &attributes, arguments.data(), ::environ);
  posix_spawnattr_destroy(&attributes), posix_spawn_file_actions_destroy(&files);
  return reason;
}

}  // namespace

void require_program(const std::vector<std::string>& words) {
  if (words.empty() || (!words[0].empty() && in_path(words[0]))) return;
  throw ConfigError(
      format("alerts.command: there is no executable program '{}'; the key is a list of a program, in PATH or with its folder, and its "
             "arguments: alerts.command=[\"mail\",\"me\"], or [\"sh\",\"-c\",\"...\"] for a shell",
             printable(words[0])));
}

Command::Command(std::vector<std::string> words, double seconds, std::function<void(const std::string&)> warn)
    : words_(std::move(words)), seconds_(seconds), warn_(std::move(warn)) {
  require_program(words_);
}

Command::~Command() { finish(); }

void Command::send(std::string message) {
  tell();
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() >= most_waiting)
    return fail(format("is too slow: {} alerts wait for it, and further ones are dropped", most_waiting));
  waiting_.push_back(std::move(message)), ++unfinished_;
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  changed_.notify_all();
}

void Command::finish() {
  if (thread_.joinable()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return unfinished_ == 0; });
    }
    thread_.request_stop(), thread_.join();
  }
  tell();
}

void Command::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::string message;
    {
      std::unique_lock lock(mutex_);
      const auto startable = [this] { return !waiting_.empty() && running_.size() < most_running; };
      if (running_.empty()) changed_.wait(lock, stop, startable);
      else changed_.wait_for(lock, stop, look_again, startable);
      if (startable()) message = std::move(waiting_.front()), waiting_.pop_front();
    }
    if (!message.empty()) start(message);
    reap(monotonic_seconds());
  }
  reap(INFINITY);
}

void Command::start(const std::string& message) {
  const Descriptor input = file_with(message);
  pid_t process = 0;
  const int reason = input.ok() ? spawn(words_, input.number(), process) : errno;
  if (reason == 0) return running_.push_back({process, monotonic_seconds() + seconds_});
  const std::scoped_lock lock(mutex_);
  --unfinished_, changed_.notify_all();
  fail(format("cannot be started: {}", std::strerror(reason)));
}

// Collects programs that have ended, and kills those whose time is over.
void Command::reap(double now) {
  std::erase_if(running_, [&](const Running& r) {
    int status = 0;
    pid_t ended = ::waitpid(r.process, &status, WNOHANG);
    const bool late = ended == 0 && now >= r.deadline;
    if (late) ::kill(-r.process, SIGKILL), ended = ::waitpid(r.process, &status, 0);
    if (ended == 0) return false;
    const std::scoped_lock lock(mutex_);
    --unfinished_, changed_.notify_all();
    if (late) fail(format("was killed after alerts.command_seconds = {}", seconds_));
    else if (ended > 0 && WIFSIGNALED(status)) fail(format("was ended by signal {}", WTERMSIG(status)));
    else if (ended > 0 && WEXITSTATUS(status) != 0) fail(format("failed with exit code {}", WEXITSTATUS(status)));
    return true;
  });
}

// With mutex_ held.
void Command::fail(const std::string& why) {
  if (std::exchange(failed_, true)) return;
  failure_ = format("alerts.command '{}' {}; the alert is in metrics.jsonl, training continues, and later failures are not shown",
                    printable(words_[0]), why);
}

void Command::tell() {
  std::string failure;
  {
    const std::scoped_lock lock(mutex_);
    if (!failed_ || std::exchange(told_, true)) return;
    failure = failure_;
  }
  warn_(failure);
}

}  // namespace octet::health
