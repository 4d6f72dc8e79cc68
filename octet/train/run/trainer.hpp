#pragma once

#include <memory>
#include <optional>

#include "octet/models/companions.hpp"
#include "octet/train/run/corpus.hpp"
#include "octet/train/run/evaluations.hpp"
#include "octet/train/run/precision_change.hpp"
#include "octet/train/run/progress.hpp"
#include "octet/train/run/run_end.hpp"
#include "octet/train/run/run_lock.hpp"
#include "octet/train/run/run_ranks.hpp"
#include "octet/train/run/step_hook.hpp"
#include "octet/train/run/step_tracer.hpp"
#include "octet/train/run/stop.hpp"
#include "octet/train/run/text_samples.hpp"

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
  std::string arm{};                    // of a comparison
  std::int64_t twin = 0;                // nn::Parameters::nudge: number of this twin of a run; 0: none
  std::string baseline{};               // arm of the run that this one is compared with, or ""
  std::string baseline_folder{};        // of that run, which stored its first gradient: run.json then has the cosine with this run's
  bool keep_first_gradient = false;     // for such runs
  std::int64_t trace_steps = 0;         // traced into StepTracer::file_name of the run's folder
  comm::Communicator* ranks = nullptr;  // that train this model together, this one among them; null: it is alone
  int ranks_here = 1;                   // of these on this machine, which share its memory
  std::string backend{};                // by which they exchange tensors, for run.json
  StepHook* hook = nullptr;             // sees the inputs of each step
};

/// The folder of a run that this process trains in, held by its lock, and the facts in run.json.
struct OpenRun {
  std::string folder;
  std::optional<RunLock> lock;
  telemetry::RunFacts facts;
  std::optional<Manifest> checkpoint;                       // of the newest good checkpoint of a resumed run
  std::vector<std::pair<std::string, std::string>> told{};  // kind and text of incidents before the record was open
};

/// One training run from its configuration to its end: makes the run's folder, trains, evaluates, saves. Recorder reports and
/// RunCheckpoints stores it. A resumed run continues as if it had never stopped: on the same device, with the same number of threads,
/// bit for bit.
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

  const DryRun& plan() const { return dry_; }
  const std::string& folder() const { return run_.folder; }
  Engine& engine() { return run_engine_->engine(); }
  const Engine& engine() const { return run_engine_->engine(); }

 private:
  Accord own_accord();
  bool out_of_time() const;
  void open_checkpoint();
  void open_folder();
  void make_folder();
  void require_model(const EngineConfig&);  // before memory is allocated and a folder is made
  void begin_weights();
  void begin_record();
  void restore();
  void begin();  // clocks, calibration
  telemetry::RunState train();
  telemetry::RunState settle(telemetry::RunState);
  void visit_state(StateVisitor&);
  bool lost() const;
  bool done() const;
  double progress(std::int64_t step) const;  // share of the run that is done after that many steps
  std::vector<data::Batch> next_micro_batches();
  void one_step();
  telemetry::StepEvent step_event(const Readout&) const;
  void after_update(const Readout&, std::span<const data::Batch> micro_batches, bool measured);
  void traced_step();
  void end_trace();
  void keep_to_plan(const telemetry::StepWork& ran);
  void record_step(const telemetry::StepEvent&);
  bool averages(std::int64_t step) const;  // whether the weights after that step count
  void evaluate_now() { evaluations_.run(engine(), *recorder_, at_, ranks_.stopped_in_step()); }
  void decide();
  health::Answer perform(const health::Request&);
  void begin_recovery();
  void warn_of_layers();
  health::Answer roll_back(std::int64_t before);
  void visit_rolled_back(StateVisitor&);
  health::Answer change_layers(const std::vector<std::string>& layers);
  void use_recipe(const std::string& recipe);
  void keep_gradient();
  void save_if_due();
  void save_last(telemetry::RunState);
  void watch_folder();
  void require_folder() const;
  bool weights_are_finite();
  bool result_is_finite();
  bool tell_not_finite();

  RunConfig config_;
  const Corpus& corpus_;
  RunRanks ranks_;
  TrainOptions options_;
  Evaluations evaluations_;
  std::int64_t steps_, ranks_wanted_;  // ranks.data as configured
  models::Companions companions_;
  OpenRun run_;
  DryRun dry_;
  std::optional<RunEngine> run_engine_;
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<StepTracer> tracer_;
  TextSamples samples_;
  Progress at_;
  health::Orders orders_;            // of recovery, for the next step
  std::vector<std::string> layers_;  // in recovery.layers.recipe now
  std::string recipe_;               // that trains the linear layers now: recipe.name or recipe.final
  bool calibrated_ = true;           // false: stopped before the first step, and there is nothing to save yet
  bool folder_lost_ = false;
  RunEnd end_;
  std::unique_ptr<RunCheckpoints> checkpoints_;  // it uses the others
  std::optional<PrecisionChange> change_;
};

}  // namespace octet::train
