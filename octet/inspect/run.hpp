#pragma once

#include <string>

namespace octet::inspect {

/// What was found, and what is wrong with it.
struct Finding {
  std::string text;
  std::string damage;  // "" or the first thing that is damaged: file, what is wrong
};

/// A run's folder: its model, what differs from the default configuration, how far it is, its last metrics, its quantizers at the last
/// measurement, its checkpoints and whether each reads as it was written. Throws as read_run() does.
Finding run_text(const std::string& folder);

/// One checkpoint, "step-000000120": step, files and their checksums, every tensor. Throws DataError where it does not read as it was
/// written, ConfigError when the folder has no such name.
std::string checkpoint_text(const std::string& folder);

}  // namespace octet::inspect
