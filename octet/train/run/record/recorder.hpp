#pragma once

#include <optional>

#include "octet/health/command.hpp"
#include "octet/health/monitor.hpp"
#include "octet/health/policy.hpp"
#include "octet/telemetry/metrics_writer.hpp"
#include "octet/telemetry/outlier.hpp"
#include "octet/telemetry/tensorboard/board_writer.hpp"
#include "octet/train/run/ranks/accord.hpp"
#include "octet/train/run/record/console.hpp"
#include "octet/train/run/ranks/decision.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/record/surroundings.hpp"
#include "octet/train/step/readout.hpp"

namespace octet::train {

/// All outputs of a run while it trains: metrics.jsonl, TensorBoard's files, the console. Owns the run's clock. The rules of octet/health
/// see each event after it was written, and their alerts are events, too; so are the decisions of recovery about them.
class Recorder {
 public:
  /// The rules of a run, and its name for the program of alerts.command.
  struct Watch {
    health::AlertsConfig alerts;
    health::RecoveryConfig recovery;
    health::Subject subject;
    std::string run;
  };
  /// Opens metrics.jsonl of the run's folder, "": nothing is written. Throws IoError, ConfigError.
  Recorder(std::string folder, const std::vector<scaling::Slot>& quantizers, Console::Kind, const Watch&);

  /// Forgets the events of an earlier attempt that left no checkpoint.
  void begin_again() { metrics_.cut_back(0); }
  /// The run's clock starts, `elapsed` seconds after the beginning of the run.
  void start_clock(double elapsed);
  /// Seconds since the beginning of the run, without the time between a stop and its resumption.
  double seconds() const;
  /// From now on TensorBoard's files get every event; they begin with the plan. `step` is the next one.
  void open_board(const telemetry::RunFacts&, std::int64_t step, std::int64_t skipped);

  /// A line of the record, not shown. Throws IoError.
  void incident(std::int64_t step, const std::string& kind, const std::string& text);
  /// The same, shown as a warning.
  void warn(std::int64_t step, const std::string& kind, const std::string& text);
  /// `path`: where a value that is not finite appeared first, or ""; `rank`: on which of several, or -1.
  void skipped(std::int64_t step, const std::string& path, int rank, const optim::LossScale::Move&);
  /// An event if the loss scale moves.
  void loss_scale(std::int64_t step, const optim::LossScale::Move&);
  void scales(std::int64_t step, const Readout&);
  void health(std::int64_t step, const Readout&);
  /// `sent_bytes`: by each rank in the step.
  void ranks(std::int64_t step, const Accord&, std::int64_t sent_bytes);
  /// Loads of the experts of these blocks; none: nothing.
  void experts(std::int64_t step, const std::vector<std::int64_t>& layers, const Readout&);
  /// Of the step's sums over ranks, in the order of RanksFacts::shared_scales; none: nothing.
  void shared_scales(std::int64_t step, std::span<const parallel::ScaleUse>);
  /// The GPUs of all ranks; none known: nothing.
  void gpus(std::int64_t step, const Accord&);
  /// The machine of this process; `epoch`: passes over the data so far.
  void machine(std::int64_t step, Device, double epoch);
  /// Adds time and the distances from earlier losses and norms.
  void step(telemetry::StepEvent, const telemetry::LineContext&);
  void evaluation(telemetry::EvalEvent, const std::string& line);
  void sample(telemetry::SampleEvent);
  /// Of recovery, after the last step; of ranks other than the first nothing.
  Decision decision() const { return {policy_.orders(), policy_.request()}; }
  /// The quantizers of the engine from now on. In the record, those of the run that it lacks have NaN.
  void use(const std::vector<scaling::Slot>& quantizers);
  /// Layers returned to their own precision because the run was resumed in another mode.
  void forget_layers(std::int64_t step, const std::string& changes);
  /// The result of the request.
  void answer(const health::Answer&);
  void end(const telemetry::EndEvent& event) { metrics_.emit(event); }
  /// Leaves the console's bar.
  void finish_console() { console_.finish(); }

  /// For those who make its lines durable.
  telemetry::MetricsWriter& metrics() { return metrics_; }
  void visit_state(StateVisitor&);
  /// Ignores that state of a checkpoint: the record continues, and so do decisions about it.
  static void keep_state(StateVisitor&);

 private:
  void emit(const telemetry::Event&);
  void alert(const telemetry::AlertEvent&);
  void recovery(const health::Policy::Events&);

  std::string folder_, run_;
  std::vector<scaling::Slot> quantizers_;        // of the run, in the order of the record
  std::vector<int> in_readout_;                  // of each its place in Readout, or -1
  std::optional<telemetry::BoardWriter> board_;  // metrics_ shows it every event
  telemetry::MetricsWriter metrics_;
  Console console_;
  telemetry::LossWindow losses_, norms_;
  double started_ = 0;  // by the machine's clock
  Surroundings surroundings_;
  health::Monitor monitor_;
  health::Policy policy_;
  std::optional<health::Command> command_;
};

/// The rules of a run. A rank that does not decide has their state, and applies none.
Recorder::Watch watch_of(const RunConfig&, const telemetry::RunFacts&, bool decides);

}  // namespace octet::train
