#pragma once

#include <string>

namespace octet::launch {

/// The variable that names a file for these notes; `octet launch` sets it for rank 0.
inline constexpr const char* run_note_variable = "OCTET_RUN_NOTE";

/// The file beside that one that note_begun() makes.
std::string begun_note(const std::string& run_note);

/// For all subcommands, once the ranks have met: from now on a signal asks them to end in order, however long their last files take.
void note_begun();

/// For subcommands that train, once the run's folder exists: tells `octet launch --restarts` which run to resume. Does nothing where it did
/// not start this process. Throws IoError.
void note_run_folder(const std::string& folder);

}  // namespace octet::launch
