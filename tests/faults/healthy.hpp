#pragma once

#include "octet/telemetry/event.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::faults {

/// The alerts of undisturbed runs.
struct Healthy {
  std::int64_t runs = 0, steps = 0;   // steps of each run
  std::vector<std::string> alerts{};  // "current, seed 1: {...}", of each alert its line
  std::int64_t warnings = 0;          // of these, of severity warning or higher
};

/// Trains `runs` runs of the configuration with bf16 and the compared recipes in turn, each time around with the next seed.
Healthy healthy_runs(const train::RunConfig&, std::int64_t runs);

}  // namespace octet::faults
