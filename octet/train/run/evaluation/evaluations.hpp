#pragma once

#include <optional>

#include "octet/data/eval_batches.hpp"
#include "octet/train/run/record/progress.hpp"
#include "octet/train/run/record/recorder.hpp"
#include "octet/train/step/preferences.hpp"

namespace octet::train {

/// The evaluations of a run on its held-out text, and their place in the record. All ranks call each.
class Evaluations {
 public:
  /// `held_out`: none if nothing is held out; `every`: steps, or 0. `references`: of its pairs; they outlive this.
  Evaluations(std::optional<data::EvalBatches> held_out, std::int64_t every, const PairReferences& references)
      : held_out_(std::move(held_out)), every_(every), references_(references) {}

  bool due(std::int64_t step) const { return every_ > 0 && step > 0 && step % every_ == 0; }
  /// Of the weights, once per step. `stopped` is asked whether to abandon it.
  void run(Engine&, Recorder&, Progress&, bool (*stopped)());
  /// Of the averaged weights, if there are some.
  void run_average(Engine&, Recorder&, const Progress&, bool (*stopped)());
  /// NaN before run_average().
  double average_loss() const { return average_loss_; }

 private:
  std::optional<data::EvalBatches> held_out_;
  std::int64_t every_;
  const PairReferences& references_;
  double average_loss_ = NAN;
};

}  // namespace octet::train
