#include "octet/cli/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "octet/train/run/ranks/stop.hpp"

namespace octet::cli {
namespace {

constexpr int stops[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

void on_stop(int) {
  train::request_stop();
  for (const int number : stops)
    if (number != SIGHUP) std::signal(number, SIG_DFL);  // a closed terminal sends it to all at once, and often twice
}
void on_save(int) { train::request_save(); }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  // nohup ignores SIGHUP, so that a run outlives its terminal.
  if (number == SIGHUP && ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes are restarted
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void heed_signals() {
  for (const int number : stops) handle(number, on_stop);
  handle(SIGUSR2, on_save);
  std::signal(SIGPIPE, SIG_IGN);  // training continues when the reader of its progress exits
  std::thread([] {
    while (true) ::pause();
  }).detach();
  sigset_t heeded;
  sigemptyset(&heeded);
  for (const int number : stops) sigaddset(&heeded, number);
  sigaddset(&heeded, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &heeded, nullptr);
}

}  // namespace octet::cli
