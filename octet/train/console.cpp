#include "octet/train/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "octet/base/log.hpp"

namespace octet::train {
namespace {

int columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Console::Console(Kind kind) : terminal_(kind == Kind::automatic && is_terminal()), quiet_(kind == Kind::quiet) {}

Console::~Console() { finish(); }

void Console::step(const StepEvent& event, const LineContext& context) {
  using namespace std::chrono_literals;
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool ends = event.step == 1 || event.step == context.steps;
  if (!ends && now - last_ < (terminal_ ? 100ms : 5000ms)) return;
  last_ = now;
  if (!terminal_) return log::line(format_step_line(event, context));
  std::fprintf(stderr, "\r%s\x1b[K", format_progress_line(event, context, columns() - 1).c_str());
  std::fflush(stderr);
  bar_ = true;
}

void Console::note(const std::string& text) {
  if (quiet_) return;
  finish();
  log::line(text);
}

void Console::finish() {
  if (bar_) std::fputc('\n', stderr);
  bar_ = false;
}

}  // namespace octet::train
