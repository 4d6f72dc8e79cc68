#pragma once

#include <string>
#include <vector>

namespace octet::launch {

/// The folder for the output of ranks, as an absolute path; unset: their output goes nowhere.
inline constexpr const char* log_variable = "OCTET_RANK_LOGS";

/// Whether this process shall run one rank for a launcher (RankFolder::variable).
bool is_around_a_rank();

/// Runs this program with `words` as the rank that the environment names. Returns the exit code of this process: 0, since
/// the launcher learns the rank's own by its folder, and mpirun would end the other ranks at once. After a failure it returns when the
/// launcher has ended the others (RankFolder::release()).
///
/// Rank 0 has this process' output. The others' goes to `rank-N.log` of the folder of log_variable, or nowhere. The last 4 KiB of standard
/// error are kept for the launcher, except rank 0's on a terminal. Tells the launcher the rank's process and its end. Signals are for the
/// rank itself: this process blocks them. Throws ConfigError, IoError, DeviceError.
int run_around_rank(const std::vector<std::string>& words);

}  // namespace octet::launch
