#pragma once

#include <cmath>
#include <vector>

#include "octet/train/step/preferences.hpp"

namespace octet::train {

/// The results of one step in the device's tables, on the host: read in StepRunner::run's `read`.
struct Readout {
  ops::AdamWStep step;                // learning rate, norm, clip factor, skip flag
  float loss = 0;                     // mean over the step's tokens
  double ahead_loss = NAN;            // mean over targets of further tokens; NaN where none are predicted
  optim::LossScale::Move loss_scale;  // 0 where there is none
  double parameter_squares = 0;       // when last measured
  std::vector<float> amax;            // one for each quantizer
  std::vector<ops::QuantizeHealth> health;
  telemetry::PreferenceFigures preferences;       // of the step's pairs
  std::vector<float> expert_counts, expert_bias;  // [layers, experts] each; empty without experts, or without biases
};
/// Waits for the step.
Readout read_out(Engine&);

}  // namespace octet::train
