#pragma once

#include "octet/train/run/checkpoints/run_checkpoints.hpp"

namespace octet::train {

/// Puts an engine of another precision plan in the place of a run's between two steps. Its record then follows that one.
class PrecisionChange {
 public:
  /// All of them outlive this.
  PrecisionChange(const RunConfig&, StateOfRun&, RunCheckpoints&);

  /// The other engine gets the state in memory, and scales of quantizers without a past come from passes over the next data, as in the
  /// first step of a run. All ranks call it. Returns why one of them cannot: then nothing has changed; "": it is done.
  std::string take_over(const EngineConfig&);
  /// The other engine's state is to be restored before RunEngine::begin_steps().
  void replace(const EngineConfig& config) { replace(config, run_.engine.place().dry_run(config)); }

 private:
  void replace(const EngineConfig&, DryRun);

  const RunConfig& config_;
  StateOfRun& run_;
  RunCheckpoints& checkpoints_;
};

}  // namespace octet::train
