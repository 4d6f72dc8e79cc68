#pragma once

#include "octet/bench/floor.hpp"
#include "octet/train/run/run_config.hpp"

namespace octet::bench {

/// One whole optimizer step, as `octet train` takes it, under one recipe.
struct StepResult {
  Row row;  // amount: tokens per step; limit: tokens per second at the floor
  Floor floor;
  double peak_bytes = 0;  // of all memory of the run
};

/// The floor of a step of `c`; `attention`: see floor_of().
Floor floor_of_step(Subject&, const train::RunConfig& c, const std::vector<Row>& attention);

/// Trains `c` on random tokens: some steps to warm up, then `repeats` timed ones. Throws DeviceError if free memory is too small.
StepResult measure_step(const train::RunConfig& c, Device, Target, int repeats, const Floor&);

}  // namespace octet::bench
