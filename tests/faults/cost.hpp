#pragma once

#include "octet/telemetry/paired_gap.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::faults {

/// Times of one configuration as shares of another's, less 1: mean and deviation over blocks of steps.
struct Ratio {
  telemetry::PairedGap processor, wall;  // time of the training thread on a processor, and time that passed
};

struct Cost {
  std::int64_t blocks = 0, block_steps = 0;
  Ratio alerts;                   // alerts on / off, both with the configuration's train.health_every
  Ratio every_step;               // with alerts, train.health_every = 1 / the configuration's
  double rules_microseconds = 0;  // per step, of the rules alone over the record of the second run
  double step_microseconds = 0;   // median of that run
};

/// Trains three runs whose steps alternate in random order, in one thread each: alerts off, on, and on with a measurement per step.
Cost alert_cost(const train::RunConfig&, std::int64_t blocks);

}  // namespace octet::faults
