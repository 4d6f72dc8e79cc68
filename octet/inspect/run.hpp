#pragma once

#include <string>

namespace octet::inspect {

/// A description, and the damage found.
struct Finding {
  std::string text;
  std::string damage;  // "" or the first damaged file and its defect
};

/// A run's folder: its model, differences from the default configuration, progress, last metrics, its quantizers at the last measurement,
/// its checkpoints, each verified. Throws as read_run() does.
Finding run_text(const std::string& folder);

/// One checkpoint, "step-000000120": step, files and their checksums, every tensor. Throws DataError if it is damaged, ConfigError when the
/// folder has no such name.
std::string checkpoint_text(const std::string& folder);

}  // namespace octet::inspect
