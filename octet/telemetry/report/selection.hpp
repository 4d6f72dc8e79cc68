#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/comparison.hpp"

namespace octet::telemetry {

/// The subject of a report.
struct Selection {
  std::vector<RunRecord> runs;
  std::optional<Comparison> comparison;  // if only one finished comparison was named
};

/// The runs of folders: each is a run, a comparison, or a folder that contains such folders (an unfinished comparison, or the folder of all
/// runs). A run that is named twice counts once; runs of one name get those of their folders instead. Throws ConfigError for any other
/// folder, and the errors of read_run() and read_comparison().
Selection select_runs(std::span<const std::string> folders);

}  // namespace octet::telemetry
