#pragma once

#include "octet/train/run/step_hook.hpp"

namespace octet::train {

/// Moves every value that is not 0 of the masters here to a neighbour in the type of its codes: away from 0 where bit e mod 128 of
/// philox(key, e / 128, twin) is set, e the value's place in its parameter, else towards 0. The largest code only goes towards 0. `key`
/// follows from seed and path. So runs with other twin numbers begin with weights that differ by rounding alone. On the host: the same on
/// every backend. Throws ContractError unless twin >= 1.
void nudge(Stream&, const nn::Parameters&, std::uint64_t seed, int twin);

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
