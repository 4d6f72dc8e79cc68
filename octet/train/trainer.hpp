#pragma once

#include <memory>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/data/loader.hpp"
#include "octet/telemetry/metrics_writer.hpp"
#include "octet/telemetry/outlier.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/console.hpp"
#include "octet/train/dry_run.hpp"
#include "octet/train/readout.hpp"
#include "octet/train/run_config.hpp"

namespace octet::train {

/// The text of a run, opened: training windows and held-out batches.
class Corpus {
 public:
  /// Throws ConfigError or DataError when the data does not fit the configuration or the model's vocabulary.
  Corpus(const data::DataConfig&, const LoopConfig&, std::int64_t vocabulary);

  const data::Dataset& dataset() const { return dataset_; }
  const data::Windows& training() const { return training_; }
  /// Null when nothing is held out.
  const data::EvalBatches* held_out() const { return held_out_.get(); }

 private:
  data::Dataset dataset_;
  data::Windows training_;
  std::unique_ptr<data::EvalBatches> held_out_;
};

/// How a run ended.
struct Outcome {
  std::string folder;
  RunState state = RunState::running;
  EndEvent end;
  MemoryPeak memory;                  // measured
  std::vector<float> first_gradient;  // flat, of step 1; only when asked for
};

struct TrainOptions {
  Console::Kind console = Console::Kind::automatic;
  bool keep_first_gradient = false;
  bool save_weights = true;         // the final weights as a Hugging Face folder, `weights` in the run's
  const std::vector<float>* baseline_gradient = nullptr;  // of step 1: run.json then tells the cosine with this run's
  std::string baseline;             // its recipe
};

/// One training run from its configuration to its end: makes the run's folder, prints the plan, trains, evaluates, writes events.
class Trainer {
 public:
  /// Plans the run and binds its memory. Throws ConfigError, DataError, IoError, or DeviceError when the machine is too small.
  Trainer(const RunConfig&, const Corpus&, const TrainOptions&);

  /// Until the last step, max_seconds, a signal, or too many skipped steps (DivergedError, after the run's files are complete).
  Outcome run();

  const DryRun& plan() const { return dry_; }
  const std::string& folder() const { return folder_; }
  Engine& engine() { return *engine_; }

 private:
  bool done() const;
  double progress() const;
  void one_step();
  void emit_step(const StepEvent&);
  void emit_scales(const Readout&);
  void emit_health(const Readout&);
  void skipped(std::span<const data::Batch> micro_batches);
  void evaluate_now();
  void keep_gradient();
  void keep_gemm_plans();
  EndEvent end_event(RunState);
  double seconds() const;

  RunConfig config_;
  const Corpus& corpus_;
  TrainOptions options_;
  std::int64_t steps_;
  DryRun dry_;
  std::string folder_;
  RunFacts facts_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<MetricsWriter> metrics_;
  Console console_;
  LossWindow losses_, norms_;
  std::vector<double> recent_losses_, rates_;
  std::vector<float> first_gradient_;
  std::int64_t step_ = 0, skipped_ = 0, skipped_in_a_row_ = 0, last_eval_step_ = -1;
  double eval_loss_, started_ = 0, train_seconds_ = 0;
};

/// Set by SIGINT and SIGTERM while a Trainer runs: it stops after the step in hand.
void request_stop();

}  // namespace octet::train
