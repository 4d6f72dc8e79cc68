#pragma once

#include <string>

#include "octet/watch/watched_run.hpp"

namespace octet::watch {

/// The size of a terminal in characters.
struct ScreenSize {
  int columns = 80, rows = 24;
};

/// A run as at most `rows` lines of at most `columns` characters: state, last step, a curve of the loss, the worst tensors, the last
/// incidents. Text of the run is shown as printable() does, so it has no effect on the terminal.
std::string screen_text(const WatchedRun&, const ScreenSize&);

}  // namespace octet::watch
