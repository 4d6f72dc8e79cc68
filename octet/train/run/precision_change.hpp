#pragma once

#include "octet/train/run/run_checkpoints.hpp"
#include "octet/train/run/run_engine.hpp"

namespace octet::train {

/// Puts an engine of another precision plan in the place of a run's between two steps. Its record then follows that one.
class PrecisionChange {
 public:
  /// All of them outlive this.
  PrecisionChange(const RunConfig&, RunEngine&, data::Loader&, Recorder&, RunCheckpoints&);

  /// The other engine gets the state in memory, and scales of quantizers without a past come from passes over the next data, as in the
  /// first step of a run. All ranks call it. Returns why one of them cannot: then nothing has changed; "": it is done.
  std::string take_over(const EngineConfig&);
  /// The same, through a checkpoint of `step`, the last one, where ranks would divide the weights of the other engine otherwise, or where
  /// the host has no memory for a copy. Throws DeviceError if one of them cannot.
  void take_over(const EngineConfig&, std::int64_t step);
  /// The other engine's state is to be restored before RunEngine::begin_steps().
  void replace(const EngineConfig& config) { replace(config, run_.place().dry_run(config)); }

 private:
  void replace(const EngineConfig&, DryRun);
  void begin_quantizers(const std::vector<scaling::QuantizerState>&);

  const RunConfig& config_;
  RunEngine& run_;
  data::Loader& loader_;
  Recorder& recorder_;
  RunCheckpoints& checkpoints_;
};

}  // namespace octet::train
