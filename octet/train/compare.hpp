#pragma once

#include "octet/telemetry/comparison.hpp"
#include "octet/train/trainer.hpp"

namespace octet::train {

struct CompareOptions {
  std::vector<std::string> recipes;  // besides the baseline
  std::string baseline = "bf16";
  std::int64_t seeds = 1;            // runs of each recipe: config.seed, config.seed + 1, ...
  double tolerance = 0.005;          // of the gap in loss, as a fraction
  Console::Kind console = Console::Kind::automatic;
};

/// Where a comparison left its files.
struct CompareOutcome {
  std::string folder;
  Comparison comparison;
};

/// Trains each recipe from the same initial weights on the same data, the baseline first, each in a folder of its own below
/// `output`/`name`, and writes compare.json and report.html there. When train.max_seconds is set it bounds all runs together: steps of
/// each recipe are timed first, and all get the same number of steps. Throws ConfigError on recipes that do not exist or repeat.
CompareOutcome compare(RunConfig, const CompareOptions&);

}  // namespace octet::train
