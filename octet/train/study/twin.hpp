#pragma once

#include "octet/train/run/step_hook.hpp"

namespace octet::train {

/// The first weights of a twin of a run: nudge() by its number. Number 0 is the run itself.
class Twin : public StepHook {
 public:
  Twin(std::int64_t seed, int number) : seed_(std::uint64_t(seed)), number_(number) {}

  void describe(telemetry::RunFacts& facts) override { facts.twin = number_; }
  void begin(Engine&) override;
  bool changes_weights() const override { return false; }

 private:
  std::uint64_t seed_;
  int number_;
};

/// The number of the twin whose folder this is; 0 for other runs, and for "".
int twin_of(const std::string& run_folder);

}  // namespace octet::train
