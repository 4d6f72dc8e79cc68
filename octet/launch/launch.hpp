#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "octet/launch/way.hpp"

namespace octet::launch {

/// Options of `octet launch`.
struct LaunchOptions {
  std::vector<std::string> words;  // of the subcommand: its name and its arguments
  Choice choice;
  Machine machine;
  std::string logs;           // folder for the output of ranks other than 0, as an absolute path; "": none
  int restarts = 0;           // starts after a failure that may not happen again
  int fewest_ranks = 0;       // of a restart; 0: restarts have all ranks
  double grace_seconds = 10;  // that the other ranks have after SIGTERM, once one has failed
  // The words that continue the run in a folder on another number of ranks; none if these ranks cannot.
  std::function<std::optional<std::vector<std::string>>(std::vector<std::string> words, const std::string& run, int ranks)> on_ranks{};
};

/// Starts the ranks and waits for them; returns the exit code of this program.
///
/// - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that this process gets are passed to every rank.
/// - Once a rank has failed (RankEnd::failed()), the others get SIGTERM, and SIGKILL after the grace time. After a signal to this process
///   the grace time counts for ranks that have not met yet (note_begun()); others may save their work however long that takes.
/// - The result is that of cause(): 0, an exit code of base/error.hpp, or 128 + the number of the signal that killed a rank. One line
///   names the rank and the reason, and the last lines of its standard error follow, unless it is rank 0, which has shown them.
/// - If mpirun is killed, or the folder removed by which ranks tell their ends, the result is 128 + the signal, or 76.
/// - After a lost peer, a killed rank or one of these it starts again while restarts are left, unless a signal asked to stop. `train` then
/// resumes the
///   run that it had begun (note_run_folder()) from its newest checkpoint.
/// - A rank that is lost in two starts in a row counts as gone: with LaunchOptions::fewest_ranks the next start leaves it out
/// (fewer_ranks.hpp).
/// - If this process is killed, the system kills the ranks.
///
/// Throws DeviceError if processes cannot be started, IoError for the folders.
int launch(const LaunchOptions&);

/// The words of `train` that resume the run in `folder`; those of other subcommands as they are.
std::vector<std::string> resumed(std::vector<std::string> words, const std::string& folder);

}  // namespace octet::launch
