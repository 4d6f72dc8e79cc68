#pragma once

#include <string>

#include "octet/plan/time.hpp"

namespace octet::plan {

/// How often GPUs and the parts around them fail, and the cost of it. Defaults: 419 interruptions of 16,384 GPUs in 54 days, Grattafiori et
/// al. 2024, "The Llama 3 Herd of Models", section 3.3.4.
struct Failures {
  double mtbf_hours = 50'000;      // of one GPU with its share of host and network
  double checkpoint_seconds = 10;  // that one checkpoint takes from training
  double restart_minutes = 10;     // from a failure to the first step after it
  double repair_hours = 24;        // until a failed node is back
};

/// A training of so many tokens, with failures. Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval", eq. 37.
struct Training {
  double seconds_between_failures = 0;                 // M = mtbf_hours / GPUs
  double seconds_between_checkpoints = 0;              // the best: sqrt(2 d M) (1 + sqrt(d / 2 M) / 3 + d / 18 M) - d for d < 2 M, else M
  double checkpoints = 0, repeated = 0, restarts = 0;  // shares of the time without failures that they add
  double days = 0;                                     // of all
  double gpu_hours = 0;                                // without spares
  std::int64_t spare_nodes = 0;                        // with which 99% of failures find one

  double goodput() const { return 1 / (1 + checkpoints + repeated + restarts); }
};
Training training_of(double tokens, const StepTime&, const Job&, const Failures&);

/// Two lines: failures and goodput; days, GPU hours and, with a price per GPU hour above 0, the cost.
std::string training_text(double tokens, const Training&, const Job&, const Failures&, double price);

}  // namespace octet::plan
