#pragma once

#include <memory>
#include <optional>

#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/data/loader.hpp"
#include "octet/telemetry/metrics_writer.hpp"
#include "octet/telemetry/outlier.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/telemetry/tensorboard/board_writer.hpp"
#include "octet/train/checkpoint/saver.hpp"
#include "octet/train/run/console.hpp"
#include "octet/train/run/dry_run.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/run/run_config.hpp"
#include "octet/train/run/run_lock.hpp"
#include "octet/train/run/stop.hpp"

namespace octet::train {

/// The text of a run, opened: training windows and held-out batches.
class Corpus {
 public:
  /// Throws ConfigError or DataError when the data does not fit the configuration or the model's vocabulary.
  Corpus(const data::DataConfig&, const LoopConfig&, std::int64_t vocabulary);

  const data::Dataset& dataset() const { return dataset_; }
  const data::Windows& training() const { return training_; }
  /// The held-out text in batches of `rows` sequences; none when nothing is held out.
  std::optional<data::EvalBatches> held_out(std::int64_t rows) const;

 private:
  data::Dataset dataset_;
  data::Windows training_;
  std::optional<data::Windows> held_out_;
  std::int64_t eval_tokens_;
};

/// How a run ended.
struct Outcome {
  std::string folder;
  RunState state = RunState::running;
  EndEvent end;
  MemoryPeak memory;  // measured
};

struct TrainOptions {
  Console::Kind console = Console::Kind::automatic;
  bool save_weights = true;          // the final weights as a Hugging Face folder, `weights` in the run's
  bool save_finished = true;         // a checkpoint at the end of a run, by which it may be trained for longer
  std::string resume{};              // folder of a run to go on with; empty: a new one
  std::string arm{};                 // of a comparison
  std::int64_t twin = 0;             // nn::Parameters::nudge: number of this twin of a run; 0: none
  std::string baseline{};            // arm of the run that this one is compared with, or ""
  std::string baseline_folder{};     // of that run, which kept its first gradient: run.json then tells the cosine with this run's
  bool keep_first_gradient = false;  // for such runs
};

/// How far a run has come.
struct Progress {
  std::int64_t step = 0, skipped = 0, skipped_in_a_row = 0, last_eval_step = -1;
  double eval_loss, train_seconds = 0, elapsed = 0;  // seconds of steps, and of the whole run up to the last checkpoint
  std::vector<double> losses, rates;                 // of every step that was not skipped; tokens/s of every step but the first

  Progress();
  void visit_state(StateVisitor&);
};

/// One training run from its configuration to its end: makes the run's folder, prints the plan, trains, evaluates, saves, writes events.
/// A resumed run goes on as if it had never stopped: on the same device, with the same number of threads, bit for bit.
class Trainer {
 public:
  /// Plans the run and binds its memory; with TrainOptions::resume, brings back its newest good checkpoint. Throws ConfigError, DataError,
  /// IoError (also when another process trains in the folder), or DeviceError when the machine is too small.
  Trainer(const RunConfig&, const Corpus&, const TrainOptions&);

  /// Until the last step, max_seconds, a signal, or too many skipped steps (DivergedError, after the run's files are complete).
  Outcome run();

  const DryRun& plan() const { return dry_; }
  const std::string& folder() const { return folder_; }
  Engine& engine() { return *engine_; }

 private:
  void open_folder();
  bool calibrate_scales();  // false: stopped, and there is nothing to save yet
  void show_on_board();
  void restore(const Manifest&);
  void visit_state(StateVisitor&);
  bool done() const;
  bool eval_due() const;
  double progress(std::int64_t step) const;  // share of the run that is done after that many steps
  std::vector<data::Batch> next_micro_batches();
  void one_step();
  void emit_step(const StepEvent&);
  void emit_scales(const Readout&);
  void emit_health(const Readout&);
  void skipped(std::span<const data::Batch> micro_batches);
  bool averages(std::int64_t step) const;  // whether the weights after that step count
  void evaluate_now();
  void evaluate_average();
  void keep_gradient();
  void save_if_due();
  void save_last(RunState);
  void begin_save();
  void report_save();
  void not_saved(std::int64_t step, const std::string& why);
  void tell(const std::string& kind, const std::string& text);  // a warning, and an incident in the record
  void watch_folder();
  void require_folder() const;
  bool weights_are_finite();
  bool result_is_finite();
  bool tell_not_finite();
  EndEvent end_event(RunState);
  double seconds() const;

  RunConfig config_;
  const Corpus& corpus_;
  TrainOptions options_;
  std::optional<data::EvalBatches> held_out_;
  std::int64_t steps_;
  DryRun dry_;
  std::string folder_;
  std::optional<RunLock> lock_;
  RunFacts facts_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<data::Loader> loader_;
  std::optional<BoardWriter> board_;  // metrics_ shows it every event
  std::unique_ptr<MetricsWriter> metrics_;
  Console console_;
  LossWindow losses_, norms_;
  Progress at_;
  double average_loss_;                                      // held-out loss of the averaged weights
  double started_ = 0, last_save_ = 0;                       // by the machine's clock
  bool fresh_ = false;                                       // no checkpoint was restored
  std::vector<std::pair<std::string, std::string>> told_{};  // kind and text of what happened before the record was open
  bool folder_lost_ = false;
  std::string not_finite_{};  // "the weights of ... are": what ends the run
  bool save_due_ = false;
  std::int64_t saved_step_ = -1;            // of the newest checkpoint, good or under way
  std::unique_ptr<CheckpointSaver> saver_;  // last: it uses metrics_
};

}  // namespace octet::train
