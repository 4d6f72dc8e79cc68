#pragma once

#include <memory>
#include <optional>

#include "octet/data/loader.hpp"
#include "octet/machine/machine.hpp"
#include "octet/telemetry/ranks_facts.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {

/// Where the engines of a run are made: the same for all of them.
struct EnginePlacement {
  Device device;
  Target target;
  comm::Communicator& ranks;  // of all axes
  DryRunRank planned{};       // this one of them
  int ranks_here = 1;         // of these on this machine, which share its memory
  std::int64_t batch = 1, accumulate = 1;

  DryRun dry_run(const EngineConfig& c) const { return train::dry_run(c, target, batch, accumulate, planned); }
  /// Free memory of the device that is this rank's.
  std::size_t available_bytes() const { return machine::available_bytes(device, ranks_here); }
};

/// Throws ConfigError or DeviceError where the final part of a run, if it has one, could not run there as well.
void require_final_part(const RunConfig&, const EnginePlacement&);

/// The engine of a run, its step runner, and the work that its dry run promises for each step. Between two steps another one may take its
/// place (PrecisionChange).
class RunEngine {
 public:
  /// `dry`: of that configuration. Weights are undefined until initialized, loaded or restored.
  RunEngine(const EnginePlacement&, const EngineConfig&, DryRun dry);

  const EnginePlacement& placement() const { return placement_; }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  StepRunner& runner() { return *runner_; }
  const DryRun& dry_run() const { return dry_; }
  /// Of a step that measures nothing.
  telemetry::StepWork planned_work() const;

  /// Makes the step runner, which quantizes all weights: after these are initialized, loaded or restored.
  void begin_steps() { runner_.emplace(*engine_); }
  /// StepRunner::calibrate() on the next data, which the loader then gives again.
  bool calibrate(data::Loader&, bool (*stopped)() = nullptr);
  /// Another engine, made when this one's memory is free again. Its state is to be restored before begin_steps().
  void replace(const EngineConfig&, DryRun);

 private:
  EnginePlacement placement_;
  DryRun dry_;
  std::unique_ptr<Engine> engine_;
  std::optional<StepRunner> runner_;
};

}  // namespace octet::train
