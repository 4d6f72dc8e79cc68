#include "octet/launch/rank_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/base/descriptor.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/launch/process.hpp"
#include "octet/launch/rank_folder.hpp"
#include "octet/launch/run_note.hpp"

namespace octet::launch {
namespace {

constexpr std::size_t tail_bytes = 4096;

// A pipe from the rank: its text is written to a file, and the last bytes are kept.
class Listener {
 public:
  explicit Listener(int file) : file_(file) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse_file("make", "a pipe", errno);
    read_ = ends[0], write_ = ends[1];
    ::fcntl(read_, F_SETFL, O_NONBLOCK);
  }
  ~Listener() { close_writer(), ::close(read_); }
  Listener(const Listener&) = delete;

  int reader() const { return read_; }
  int writer() const { return write_; }
  const std::string& tail() const { return tail_; }
  void close_writer() {
    if (write_ >= 0) ::close(write_);
    write_ = -1;
  }
  /// Reads all that has come. False at its end.
  bool take() {
    char bytes[8192];
    for (;;) {
      const ssize_t n = ::read(read_, bytes, sizeof bytes);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n == 0) return false;
      keep({bytes, std::size_t(n)});
    }
  }

 private:
  void keep(std::string_view text) {
    tail_ += text;
    if (tail_.size() > tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
    while (file_ >= 0 && !text.empty()) {
      const ssize_t n = ::write(file_, text.data(), text.size());
      if (n < 0 && errno != EINTR) file_ = -1;  // a full disk ends the log, not the rank
      if (n > 0) text.remove_prefix(std::size_t(n));
    }
  }

  int file_, read_ = -1, write_ = -1;
  std::string tail_;
};

Descriptor open_log(int rank) {
  const auto folder = comm::environment_variable(log_variable);
  if (!folder) return {};
  const std::string path = format("{}/rank-{}.log", *folder, rank);
  return open_own_file(path, O_WRONLY | O_CREAT | O_APPEND, "write to");
}

// Until the process has ended and all that it wrote is read. A process that it left behind may hold the pipes: it is not waited for.
void listen(pid_t process, Listener& out, Listener& error) {
  const int handle = int(::syscall(SYS_pidfd_open, process, 0));
  std::array<pollfd, 3> watched{pollfd{handle, POLLIN, 0}, pollfd{out.reader(), POLLIN, 0}, pollfd{error.reader(), POLLIN, 0}};
  while (::poll(watched.data(), watched.size(), -1) >= 0 || errno == EINTR) {
    const bool ended = watched[0].revents != 0;
    if (!out.take()) watched[1].fd = -1;
    if (!error.take()) watched[2].fd = -1;
    if (ended) break;
  }
  if (handle >= 0) ::close(handle);
}

// Waits for its end, tells it, and only then gives its number back to the system, so the launcher cannot signal another process.
RankEnd await(int rank, pid_t process, const RankFolder& folder, const std::string& tail) {
  siginfo_t info{};
  while (::waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  RankEnd end{.rank = rank, .seconds = monotonic_seconds(), .tail = tail};
  (info.si_code == CLD_EXITED ? end.code : end.signal) = info.si_status;
  if (folder.is_there()) folder.tell_end(end);
  ::waitpid(process, nullptr, 0);
  return end;
}

Start start_of(const std::vector<std::string>& words, int rank, const RankFolder& folder) {
  Start s{.program = this_program, .words = words, .removed = {RankFolder::variable, log_variable}};
  if (rank == 0) s.variables.emplace_back(run_note_variable, folder.run_note());
  return s;
}

// Rank 0 has this process' output. Its errors are kept as those of the others, unless they go to a terminal, which has shown them.
RankEnd run_rank(Start s, int rank, const RankFolder& folder, const sigset_t& mask) {
  const bool shown = rank == 0 && ::isatty(STDERR_FILENO) == 1;
  const Descriptor log = rank == 0 ? Descriptor() : open_log(rank);
  Listener out(log.number()), error(rank == 0 ? STDERR_FILENO : log.number());
  if (rank != 0) s.output = out.writer();
  if (!shown) s.error = error.writer();
  const pid_t process = start(s, mask);
  out.close_writer(), error.close_writer();
  folder.tell_process(rank, process);
  listen(process, out, error);
  return await(rank, process, folder, error.tail());
}

}  // namespace

bool is_around_a_rank() { return comm::environment_variable(RankFolder::variable).has_value(); }

int run_around_rank(const std::vector<std::string>& words) {
  const RankFolder folder(*comm::environment_variable(RankFolder::variable));
  const int rank = comm::launched_rank_from_environment().rank;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // mpirun was killed
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const RankEnd end = run_rank(start_of(words, rank, folder), rank, folder, before);
  while (end.failed() && folder.is_there() && !folder.released()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return 0;
}

}  // namespace octet::launch
