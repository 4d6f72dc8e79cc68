#pragma once

#include "octet/train/run/finiteness.hpp"
#include "octet/train/run/checkpoints/run_checkpoints.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"

namespace octet::train {

/// When a run saves its state: ranks agree on it, and weights that are not finite are never saved.
class Saving {
 public:
  /// All of them outlive this.
  Saving(RunRanks& ranks, StateOfRun& run, RunCheckpoints& checkpoints, Finiteness& finite)
      : ranks_(ranks), run_(run), checkpoints_(checkpoints), finite_(finite) {}

  /// Between two steps.
  void if_due(const health::Orders&);
  /// The state of the last step.
  void last();

 private:
  RunRanks& ranks_;
  StateOfRun& run_;
  RunCheckpoints& checkpoints_;
  Finiteness& finite_;
};

}  // namespace octet::train
