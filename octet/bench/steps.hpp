#pragma once

#include "octet/bench/floor.hpp"
#include "octet/bench/expert_loads.hpp"
#include "octet/data/windows.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::bench {

/// One whole optimizer step, as `octet train` takes it, under one recipe.
struct StepResult {
  Row row;  // amount: tokens per step; limit: tokens per second at the floor
  Floor floor;
  double peak_bytes = 0;    // of all memory of the run
  double fullest_load = 0;  // of an expert, as a multiple of the mean; 0: no experts
};

/// The micro-batches of a step of one rank: tokens that another seed has otherwise.
std::vector<data::Batch> random_batches(const train::RunConfig& c, std::uint64_t seed = 0);
/// Steps before the first timed one: a micro-step runs twice before its graph is recorded, and the first replay costs time too.
std::int64_t warm_up_steps(const train::RunConfig& c);

/// The floor of a step of `c`; `attention`: see floor_of().
Floor floor_of_step(Subject&, const train::RunConfig& c, const std::vector<Row>& attention);

/// Trains `c` on random tokens: some steps to warm up, then `repeats` timed ones. Throws DeviceError if free memory is too small.
StepResult measure_step(const train::RunConfig& c, Device, Target, int repeats, const Floor&, const ExpertLoads& = ExpertLoads());

}  // namespace octet::bench
