#include "octet/cli/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "octet/train/stop.hpp"

namespace octet::cli {
namespace {

constexpr int stops[] = {SIGINT, SIGTERM, SIGUSR1};

void on_stop(int) {
  train::request_stop();
  for (const int number : stops) std::signal(number, SIG_DFL);
}
void on_save(int) { train::request_save(); }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // what was being read or written goes on
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void heed_signals() {
  for (const int number : stops) handle(number, on_stop);
  handle(SIGUSR2, on_save);
  std::thread([] { while (true) ::pause(); }).detach();
  sigset_t heeded;
  sigemptyset(&heeded);
  for (const int number : stops) sigaddset(&heeded, number);
  sigaddset(&heeded, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &heeded, nullptr);
}

}  // namespace octet::cli
