#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/comparison.hpp"

namespace octet {

/// What a report is to be about.
struct Selection {
  std::vector<RunRecord> runs;
  std::optional<Comparison> comparison;  // where one finished comparison was named, and nothing else
};

/// The runs that are meant by folders, each that of a run, of a comparison, or one that holds such folders: a comparison that has not
/// ended, or what all runs go into. A run that is named twice counts once; runs of one name get those of their folders instead. Throws
/// ConfigError for a folder that is none of these, and what read_run() and read_comparison() throw.
Selection select_runs(std::span<const std::string> folders);

}  // namespace octet
