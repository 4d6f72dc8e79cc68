#pragma once

#include "octet/machine/gpu_meter.hpp"
#include "octet/train/run/finiteness.hpp"
#include "octet/train/run/open_run.hpp"
#include "octet/train/run/run_length.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"
#include "octet/train/step/sent_bytes.hpp"

namespace octet::train {

/// The record of each step: its results, read while they are in the engine's tables, its times, and whether it ran as planned. It also
/// counts them in the run's progress.
class StepRecord {
 public:
  /// All of them outlive this.
  StepRecord(const RunConfig&, const RunLength&, RunRanks&, OpenRun&, StateOfRun&, Finiteness&);

  /// Whether that step also measures health.
  bool measured(std::int64_t step) const { return step % config_.train.health_every == 0 || step == 1; }
  /// Before the step takes its batches.
  void begin();
  /// When the update is done, and results are still in the engine's tables. Work from here to the end of results() is that of the read-out.
  void updated();
  void results(std::span<const data::Batch> micro_batches);
  /// When the step is done. Throws ContractError if it did not run as planned.
  void end();
  /// `own` with the times of this rank's step, for RunRanks::agree().
  Accord timed(Accord own);
  /// When ranks have agreed.
  void emit(std::span<const data::Batch> micro_batches);
  /// The last one that was emitted.
  const telemetry::StepEvent& event() const { return event_; }

 private:
  Engine& engine() { return run_.engine.engine(); }
  Work work() { return engine().stream.work(); }
  void count_skip(std::span<const data::Batch> micro_batches);
  void keep_to_plan(const telemetry::StepWork& ran);
  void show();

  const RunConfig& config_;
  const RunLength& length_;
  RunRanks& ranks_;
  OpenRun& open_;
  StateOfRun& run_;
  Finiteness& finite_;
  std::unique_ptr<machine::GpuMeter> gpu_;  // of this rank
  struct Marks {
    double seconds = 0, waited = 0, exchanging = 0;
    Work before, updated, told;  // told: exchanges of the read-out, which no plan has
    SentBytes sent_before, sent_updated, sent_told;
  };
  Marks marks_;
  Readout shown_;
  telemetry::StepWork ran_;
  std::int64_t sent_ = 0;  // bytes of the step, with those that depend on data
  telemetry::StepEvent event_;
};

}  // namespace octet::train
