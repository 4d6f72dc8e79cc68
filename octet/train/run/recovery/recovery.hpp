#pragma once

#include "octet/train/run/recovery/precision_change.hpp"
#include "octet/train/run/record/run_end.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"

namespace octet::train {

/// The actions of recovery in a run: layers in another precision, the return to a checkpoint, the stop. health::Policy of the first rank
/// asks for them.
class Recovery {
 public:
  /// All of them outlive this.
  Recovery(const RunConfig&, RunRanks&, StateOfRun&, RunCheckpoints&, PrecisionChange&, RunEnd&);

  /// Before the first step of this process. Layers of a run that was resumed in another mode return to their own precision; throws
  /// DeviceError where they cannot.
  void begin();
  /// After each step, by the decision of rank 0, until nothing more is asked of this run. All ranks call it.
  void decide();
  /// For the next step.
  const health::Orders& orders() const { return orders_; }

 private:
  void warn_of_layers();
  health::Answer perform(const health::Request&);
  health::Answer roll_back(std::int64_t before);
  health::Answer change_layers(const std::vector<std::string>& layers);

  const RunConfig& config_;
  RunRanks& ranks_;
  StateOfRun& run_;
  RunCheckpoints& checkpoints_;
  PrecisionChange& precision_;
  RunEnd& end_;
  health::Orders orders_;
};

}  // namespace octet::train
