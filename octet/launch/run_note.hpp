#pragma once

#include <string>

namespace octet::launch {

/// The variable that names a file for note_run_folder(); `octet launch` sets it for rank 0.
inline constexpr const char* run_note_variable = "OCTET_RUN_NOTE";

/// For subcommands that train, once the run's folder exists: tells `octet launch --restarts` which run to resume. Does nothing where it did
/// not start this process. Throws IoError.
void note_run_folder(const std::string& folder);

}  // namespace octet::launch
