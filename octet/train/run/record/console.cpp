#include "octet/train/run/record/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "octet/base/log.hpp"

namespace octet::train {
namespace {
using namespace std::chrono_literals;

int columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

std::chrono::duration<double> line_distance(std::chrono::duration<double> elapsed) {
  return std::clamp<std::chrono::duration<double>>(elapsed / 50, 5s, 5min);
}

Console::Console(Kind kind) : terminal_(kind == Kind::automatic && is_terminal()), quiet_(kind == Kind::quiet) {}

Console::~Console() { finish(); }

void Console::step(const telemetry::StepEvent& event, const telemetry::LineContext& context) {
  if (quiet_) return;
  last_ = Step{event, context};
  const auto now = Clock::now();
  const std::chrono::duration<double> distance = terminal_ ? 100ms : line_distance(now - began_);
  if (event.step == 1 || event.step == context.steps || now - shown_ >= distance) show(*last_);
}

void Console::show(const Step& s) {
  shown_ = Clock::now();
  if (terminal_) log::status(telemetry::format_progress_line(s.event, s.context, columns() - 1));
  else log::line(telemetry::format_step_line(s.event, s.context));
  last_.reset();
}

void Console::note(const std::string& text) {
  if (!quiet_) log::line(text);
}

void Console::finish() {
  if (last_) show(*last_);
  if (terminal_) log::end_status();
}

}  // namespace octet::train
