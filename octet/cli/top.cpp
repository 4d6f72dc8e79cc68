#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>

#include "octet/base/error.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/cli/keys.hpp"
#include "octet/watch/screen.hpp"
#include "octet/watch/runs.hpp"

namespace octet::cli {
namespace {

constexpr std::int64_t slice_bytes = std::int64_t(16) << 20;

struct Options {
  std::string folder;
  bool once = false;
};

watch::ScreenSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {.columns = 200, .rows = 60};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

// The run that began last: of a folder of runs it is the one that a person who trains wants to see.
std::size_t newest(const watch::Runs& runs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs.at(i).facts().started > runs.at(best).facts().started) best = i;
  return best;
}

ExitCode show(const Options& o) {
  watch::Runs runs({o.folder});
  if (runs.size() == 0) throw ConfigError(format("{}: there is no run in this folder; name the folder of a run", printable(o.folder)));
  const std::size_t number = newest(runs);
  const bool live = !o.once && ::isatty(STDOUT_FILENO) == 1;
  std::optional<Keys> keys;
  if (live) keys.emplace();
  for (;;) {
    const watch::WatchedRun& run = runs.fresh(number);
    while (runs.read(slice_bytes) && !live) continue;
    const std::string text = watch::screen_text(run, terminal_size());
    // Home, each line erased to its end before the newline, and the rest of the screen erased: no flicker.
    if (live) {
      std::string drawn = "\x1b[H";
      for (const char c : text) drawn += c == '\n' ? "\x1b[K\n" : std::string(1, c);
      output::write(drawn + "\x1b[J");
    } else {
      output::write(text);
    }
    output::finish();
    if (!live) return ExitCode::done;
    if (keys->quits(run.complete() ? 1000 : 10)) return ExitCode::done;
  }
}

}  // namespace

void add_top(Program& program) {
  auto o = std::make_shared<Options>();
  Command command =
      program.command("top", "Show a run in the terminal, refreshed every second, from its folder alone; q ends it",
                      "  octet top runs/current\n"
                      "  octet top runs                                    the run in the folder that began last\n"
                      "  octet top runs/current --once                     print once; also when the output is not a terminal");
  command.positional("folder", o->folder, "folder of a run, or one that contains runs", true);
  command.flag("--once", o->once, "print once and exit");
  command.run([o] { return show(*o); });
}

}  // namespace octet::cli
