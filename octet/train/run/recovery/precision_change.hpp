#pragma once

#include "octet/train/run/checkpoints/run_checkpoints.hpp"
#include "octet/train/run/engine/layer_change.hpp"

namespace octet::train {

/// The precision of a run, which changes between two steps: an engine of another precision plan then takes the place of the run's, and its
/// record follows that one.
class PrecisionChange {
 public:
  /// `now`: that of the run's engine. All of them outlive this.
  PrecisionChange(const RunConfig&, StateOfRun&, RunCheckpoints&, const PrecisionNow& now);

  const PrecisionNow& now() const { return now_; }
  /// The other engine gets the state in memory, and scales of quantizers without a past come from passes over the next data, as in the
  /// first step of a run. All ranks call it. Returns why one of them cannot: then nothing has changed; "": it is done.
  std::string take_over(const PrecisionNow&);
  /// The recipe of the next step. The state goes through a checkpoint of the last one where ranks would divide the weights of the other
  /// engine otherwise. Nothing where it is the recipe now. Throws DeviceError if a rank cannot.
  void use_recipe(const std::string&);
  /// The other engine's state is to be restored before RunEngine::begin_steps(). Nothing where it is the precision now.
  void replace(const PrecisionNow&);

 private:
  void set(const PrecisionNow&);
  void replace(const PrecisionNow&, DryRun);
  void through_checkpoint(const PrecisionNow&, const std::string& reason);
  void begin_quantizers(const std::vector<scaling::QuantizerState>&);

  const RunConfig& config_;
  StateOfRun& run_;
  RunCheckpoints& checkpoints_;
  PrecisionNow now_;
};

}  // namespace octet::train
