#include "octet/cli/keys.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "octet/base/clock.hpp"

namespace octet::cli {
namespace {

volatile std::sig_atomic_t ended_by = 0;
constexpr int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

Keys::Keys() {
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp() || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  on_ = true;
  for (const int number : ends) {
    struct sigaction action {};
    action.sa_handler = [](int n) { ended_by = n; };
    ::sigaction(number, &action, nullptr);
  }
  termios changed = before_;
  changed.c_lflag &= ~tcflag_t(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &changed);
}

Keys::~Keys() {
  if (!on_) return;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (const int number : ends) std::signal(number, SIG_DFL);
  if (ended_by != 0) ::raise(int(ended_by));
}

bool Keys::quits(int milliseconds) {
  for (const double until = monotonic_seconds() + milliseconds / 1000.0; ended_by == 0;) {
    const int left = std::max(0, int(1000 * (until - monotonic_seconds())));
    pollfd ready{.fd = on_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, left) == 0) return false;
    if (ready.revents == 0) continue;  // a signal
    char pressed = 0;
    if (::read(STDIN_FILENO, &pressed, 1) != 1 || pressed == 'q' || pressed == 'Q') return true;
  }
  return true;
}

}  // namespace octet::cli
