#include "octet/launch/supervisor.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "octet/base/clock.hpp"

namespace octet::launch {
namespace {

constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr double leave_seconds = 2;   // for mpirun once no rank is left: that of Open MPI 4.1 can hang when a rank dies while it starts
constexpr double settle_seconds = 1;  // between a lost peer and the end of the others, in which the rank with the cause tells it

}  // namespace

Supervisor::Supervisor(RankFolder folder, int ranks, double grace_seconds)
    : folder_(std::move(folder)),
      ranks_(ranks),
      grace_seconds_(grace_seconds),
      passed_(std::size_t(ranks)),
      asked_(std::size_t(ranks)),
      ranks_begun_(std::size_t(ranks)),
      ends_(std::size_t(ranks)) {
  ::sigemptyset(&heeded_);
  ::sigaddset(&heeded_, SIGCHLD);
  for (const int number : passed_on) {
    struct sigaction action {};
    const bool ignored = number == SIGHUP && ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;  // by nohup
    if (!ignored) ::sigaddset(&heeded_, number);
  }
  ::sigprocmask(SIG_BLOCK, &heeded_, &before_);
}

Supervisor::~Supervisor() {
  kill_all();
  while (!processes_.empty()) {
    ::waitpid(processes_.back(), nullptr, 0);
    processes_.pop_back();
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Ended Supervisor::run(const std::vector<Start>& starts) {
  for (const Start& s : starts) processes_.push_back(start(s, before_));
  while (!processes_.empty()) {
    const timespec tick{0, 50'000'000};
    if (const int number = ::sigtimedwait(&heeded_, nullptr, &tick); number > 0) take(number);
    reap();
    watch_folder();
    find_processes();
    watch_ends();
    pass_on();
    end_others();
  }
  watch_folder();
  watch_ends();
  await_processes();
  Ended out{.ranks = {}, .starter_status = starter_status_, .starter_signal = starter_signal_, .folder_lost = folder_lost_, .run = run_};
  for (const auto& end : ends_)
    if (end) out.ranks.push_back(*end);
  out.started = int(std::count_if(ranks_begun_.begin(), ranks_begun_.end(), [](const auto& rank) { return rank.has_value(); }));
  out.silent = ranks_ - int(out.ranks.size());
  out.stopped = std::any_of(signals_.begin(), signals_.end(), [](int number) { return number != SIGUSR2; });
  return out;
}

void Supervisor::reap() {
  std::erase_if(processes_, [&](pid_t process) {
    int status = 0;
    if (::waitpid(process, &status, WNOHANG) != process) return false;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (starter_status_ == 0) starter_status_ = code, starter_signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (code != 0) failed_at_ = std::min(failed_at_.value_or(monotonic_seconds()), monotonic_seconds());  // not a rank: mpirun
    return true;
  });
}

void Supervisor::take(int number) {
  if (number == SIGCHLD) return;
  signals_.push_back(number);
  if (number != SIGUSR2 && !stopped_at_) stopped_at_ = monotonic_seconds();
}

// Without it, ranks cannot tell their ends.
void Supervisor::watch_folder() {
  if (run_.empty()) run_ = folder_.run();
  if (folder_lost_ || folder_.is_there()) return;
  folder_lost_ = true;
  failed_at_ = std::min(failed_at_.value_or(monotonic_seconds()), monotonic_seconds());
}

void Supervisor::find_processes() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (auto& begun = ranks_begun_[std::size_t(rank)]; !begun)
      if (const auto process = folder_.process(rank)) begun.emplace(*process);
}

// Those that the system kills after their starter: another start needs the files that they hold.
void Supervisor::await_processes() {
  const auto left = [](const auto& rank) { return rank && !rank->has_ended(); };
  for (const double begin = monotonic_seconds(); monotonic_seconds() - begin < leave_seconds;) {
    if (std::none_of(ranks_begun_.begin(), ranks_begun_.end(), left)) return;
    const timespec tick{0, 5'000'000};
    ::nanosleep(&tick, nullptr);
  }
}

void Supervisor::signal_others(int number) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (const auto& begun = ranks_begun_[std::size_t(rank)]; begun && !ends_[std::size_t(rank)]) begun->signal(number);
}

bool Supervisor::all_ended() const {
  return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); });
}

// A rank that has not started yet gets the signals later.
void Supervisor::pass_on() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto r = std::size_t(rank);
    if (passed_[r] == signals_.size() || ends_[r]) continue;
    if (!ranks_begun_[r]) continue;
    while (passed_[r] < signals_.size()) ranks_begun_[r]->signal(signals_[passed_[r]++]);
  }
}

void Supervisor::watch_ends() {
  for (int rank = 0; rank < ranks_; ++rank) {
    auto& end = ends_[std::size_t(rank)];
    if (end || !(end = folder_.end(rank)) || !end->failed()) continue;
    const double at = end->seconds + (end->lost_a_peer() ? settle_seconds : 0);
    failed_at_ = std::min(failed_at_.value_or(at), at);
  }
}

// Once each, also those that have not started yet.
void Supervisor::ask_others() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto r = std::size_t(rank);
    if (asked_[r] || ends_[r]) continue;
    if (ranks_begun_[r]) asked_[r] = true, ranks_begun_[r]->signal(SIGTERM);
  }
}

void Supervisor::end_others() {
  if (all_ended()) release();
  if (released_at_ && monotonic_seconds() > *released_at_ + leave_seconds)
    for (const pid_t process : processes_) ::kill(process, SIGKILL);
  if (released_at_) return;
  if (failed_at_ && monotonic_seconds() >= *failed_at_) {
    if (!asked_at_) asked_at_ = monotonic_seconds();
    ask_others();
  }
  const auto begin = grace_begin();
  if (killed_ || !begin || monotonic_seconds() < *begin + grace_seconds_) return;
  killed_ = true;
  signal_others(SIGKILL);
  release();  // also where a rank never started, and will not tell its end
}

// Ranks that have met may save their work after a signal, which takes its time, and notice each other's loss. Others wait for nothing else.
std::optional<double> Supervisor::grace_begin() const {
  if (asked_at_) return asked_at_;
  return folder_.has_begun() ? std::nullopt : stopped_at_;
}

void Supervisor::release() {
  if (released_at_) return;
  if (folder_.is_there()) folder_.release();
  released_at_ = monotonic_seconds();
}

// For the destructor: an error on our side.
void Supervisor::kill_all() {
  signal_others(SIGKILL);
  for (const pid_t process : processes_) ::kill(process, SIGKILL);
}

}  // namespace octet::launch
