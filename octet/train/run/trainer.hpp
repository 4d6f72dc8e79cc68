#pragma once

#include <optional>

#include "octet/train/run/evaluation/evaluations.hpp"
#include "octet/train/run/recovery/recovery.hpp"
#include "octet/train/run/saving.hpp"
#include "octet/train/run/step_hook.hpp"
#include "octet/train/run/step_record.hpp"
#include "octet/train/run/record/step_tracer.hpp"
#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/run/evaluation/text_samples.hpp"

namespace octet::train {

/// How a run ended.
struct Outcome {
  std::string folder;
  telemetry::RunState state = telemetry::RunState::running;
  telemetry::EndEvent end;
  MemoryPeak memory;  // measured
};

struct TrainOptions {
  Console::Kind console = Console::Kind::automatic;
  bool save_weights = true;             // the final weights as a Hugging Face folder, `weights` in the run's
  bool save_finished = true;            // a checkpoint at the end of a run, by which it may be trained for longer
  std::string resume{};                 // folder of a run to resume; empty: a new one
  std::int64_t trace_steps = 0;         // traced into StepTracer::file_name of the run's folder
  comm::Communicator* ranks = nullptr;  // that train this model together, this one among them; null: it is alone
  int ranks_here = 1;                   // of these on this machine, which share its memory
  std::string backend{};                // by which they exchange tensors, for run.json
  StepHook* hook = nullptr;             // sees the run at its seams
};

/// One training run from its configuration to its end: makes the run's folder, trains, evaluates, saves. StepRecord reports its steps,
/// Recovery acts on alerts, and Saving stores its state. A resumed run continues as if it had never stopped: on the same device, with the
/// same number of threads, bit for bit.
///
/// Each of several ranks has a trainer. The first one owns the run's folder: it alone reports, saves and warns, and the others' outcome has
/// no folder. All of them read checkpoints.
class Trainer {
 public:
  /// Plans the run and binds its memory; with TrainOptions::resume, brings back its newest good checkpoint. Throws ConfigError, DataError,
  /// IoError (also when another process trains in the folder), or DeviceError when the machine is too small.
  Trainer(const RunConfig&, const Corpus&, const TrainOptions&);

  /// Until the last step, max_seconds, a signal, or too many skipped steps or a stop by recovery (DivergedError, after the run's files are
  /// complete).
  Outcome run();

  const DryRun& plan() const { return plan_; }
  const std::string& folder() const { return run_.folder(); }
  Engine& engine() { return engine_.engine(); }

 private:
  // Each makes or checks one part for the constructor, in this order.
  RunConfig checked(RunConfig);
  models::Companions checked_model();  // before memory is allocated and a folder is made
  EnginePlacement placement();
  RunEngine planned_engine();
  void begin_weights(Engine&);
  telemetry::RunFacts facts();
  data::Loader::Options loader_options();
  void begin_record();
  void restore();

  Accord own_accord();
  bool out_of_time() const { return length_.out_of_time(recorder_.seconds()); }
  void begin();  // clocks, calibration
  void begin_references();
  telemetry::RunState train();
  telemetry::RunState settle(telemetry::RunState);
  void save_result();
  bool lost() const;
  bool done() const;
  std::vector<data::Batch> next_micro_batches();
  double learning_rate(std::int64_t step) const;
  void one_step();
  void average_weights();
  void traced_step();
  void end_trace();
  void evaluate_now() { evaluations_.run(engine(), recorder_, at_, ranks_.stopped_in_step()); }

  TrainOptions options_;
  NoHook no_hook_;
  StepHook& hook_;
  const Corpus& corpus_;
  RunRanks ranks_;
  PairReferences references_;
  Evaluations evaluations_;
  TextSamples samples_;
  RunConfig config_;
  std::int64_t ranks_wanted_;  // ranks.data as configured
  RunLength length_;
  Resumed resumed_;
  models::Companions companions_;
  std::optional<StepTracer> tracer_;
  DryRun plan_;  // in the precision of the configuration
  RunEngine engine_;
  OpenRun run_;
  data::Loader loader_;
  Recorder recorder_;
  Progress at_;
  RunEnd end_;
  StateOfRun state_{engine_, loader_, recorder_, at_, references_};
  RunCheckpoints checkpoints_;
  PrecisionChange precision_;
  Recovery recovery_;
  Finiteness finite_{state_, end_};
  StepRecord record_{config_, length_, ranks_, run_, state_, finite_};
  Saving saving_{ranks_, state_, checkpoints_, finite_};
  bool calibrated_ = true;  // false: stopped before the first step, and there is nothing to save yet
};

}  // namespace octet::train
