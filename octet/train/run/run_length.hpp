#pragma once

#include "octet/train/run/record/progress.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// How long a run is: its steps, or its time where only that is known.
class RunLength {
 public:
  /// Throws ConfigError as RunConfig::steps().
  explicit RunLength(const RunConfig& c) : steps_(c.steps()), max_seconds_(c.train.max_seconds) {}

  /// 0: only its time is known.
  std::int64_t steps() const { return steps_; }
  bool all_steps(std::int64_t step) const { return steps_ > 0 && step >= steps_; }
  bool out_of_time(double seconds) const { return max_seconds_ > 0 && seconds >= max_seconds_; }
  /// Share of the run that is done after that many steps.
  double done(const Progress& at, std::int64_t step) const {
    return steps_ > 0 ? double(step) / double(steps_) : at.train_seconds / max_seconds_;
  }

 private:
  std::int64_t steps_;
  double max_seconds_;
};

}  // namespace octet::train
