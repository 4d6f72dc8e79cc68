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
    watch_ends();
    pass_on();
    end_others();
  }
  watch_ends();
  Ended out{.ranks = {}, .starter_status = starter_status_};
  for (const auto& end : ends_)
    if (end) out.ranks.push_back(*end);
  out.silent = ranks_ - int(out.ranks.size());
  out.stopped = std::any_of(signals_.begin(), signals_.end(), [](int number) { return number != SIGUSR2; });
  return out;
}

void Supervisor::reap() {
  std::erase_if(processes_, [&](pid_t process) {
    int status = 0;
    if (::waitpid(process, &status, WNOHANG) != process) return false;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (starter_status_ == 0) starter_status_ = code;
    if (code != 0) failed_at_ = std::min(failed_at_.value_or(monotonic_seconds()), monotonic_seconds());  // not a rank: mpirun
    return true;
  });
}

void Supervisor::take(int number) {
  if (number != SIGCHLD) signals_.push_back(number);
}

void Supervisor::signal_others(int number) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (const auto process = folder_.process(rank); process && !ends_[std::size_t(rank)]) ::kill(*process, number);
}

bool Supervisor::all_ended() const {
  return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); });
}

// A rank that has not started yet gets the signals later.
void Supervisor::pass_on() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto r = std::size_t(rank);
    if (passed_[r] == signals_.size() || ends_[r]) continue;
    const auto process = folder_.process(rank);
    if (!process) continue;
    while (passed_[r] < signals_.size()) ::kill(*process, signals_[passed_[r]++]);
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
    if (const auto process = folder_.process(rank)) asked_[r] = true, ::kill(*process, SIGTERM);
  }
}

void Supervisor::end_others() {
  if (all_ended()) release();
  if (released_at_ && monotonic_seconds() > *released_at_ + leave_seconds)
    for (const pid_t process : processes_) ::kill(process, SIGKILL);
  if (!failed_at_ || monotonic_seconds() < *failed_at_ || released_at_) return;
  if (!asked_at_) asked_at_ = monotonic_seconds();
  ask_others();
  if (killed_ || monotonic_seconds() < *asked_at_ + grace_seconds_) return;
  killed_ = true;
  signal_others(SIGKILL);
  release();  // also where a rank never started, and will not tell its end
}

void Supervisor::release() {
  if (released_at_) return;
  folder_.release();
  released_at_ = monotonic_seconds();
}

// For the destructor: an error on our side.
void Supervisor::kill_all() {
  signal_others(SIGKILL);
  for (const pid_t process : processes_) ::kill(process, SIGKILL);
}

}  // namespace octet::launch
