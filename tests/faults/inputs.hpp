#pragma once

#include "tests/faults/fault.hpp"

namespace octet::faults {

/// Batches that a run meets in 5 steps. The same samples are bad whenever they are read again.
enum class BadBatch : std::uint8_t {
  repeated_token,  // all tokens are one
  label_noise,     // targets are random bytes
};
std::unique_ptr<Disturbance> make_bad_batches(const Target&, BadBatch);

/// 30 times the learning rate in 10 steps.
std::unique_ptr<Disturbance> make_high_rate(const Target&);

/// A rank that sleeps twice as long as its steps take, from then on.
std::unique_ptr<Disturbance> make_slow_rank(const Target&);

/// The scales of the input and of the output's gradient of "layers.<layer>.mlp.down" keep their values, from then on. The recipe must store
/// its scales from step to step.
std::unique_ptr<Disturbance> make_frozen_scale(const Target&);

}  // namespace octet::faults
