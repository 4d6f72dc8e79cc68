#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The events of a run: one struct per event, one line of `metrics.jsonl` each. docs/run-folder.md describes the lines.
// `time` is seconds since the run began. A number that is not finite is written as null, since JSON has no NaN, and read back as NaN.
// `event` is the name of the event in its line. `fields()` (event_fields.cpp) lists its members but step and time, in the order of the
// line, with name, unit and meaning; lines are written and read by that list.

namespace octet::telemetry {

class EventVisitor;  // octet/telemetry/event_fields.hpp

/// Means over pairs of answers, of a run that learns preferences (dpo.beta); NaN in others. A reward is dpo.beta times the difference of
/// log-probabilities by the model and by its reference.
struct PreferenceFigures {
  double chosen_reward = NAN, rejected_reward = NAN;
  double accuracy = NAN;  // share of pairs whose chosen answer has the larger reward
  double chosen_log_probability = NAN, rejected_log_probability = NAN;

  bool known() const { return std::isfinite(accuracy); }
  double margin() const { return chosen_reward - rejected_reward; }
  void fields(EventVisitor&);
};

/// One optimizer step.
struct StepEvent {
  static constexpr const char* event = "step";
  std::int64_t step = 0;
  double time = 0;
  double loss = 0;       // mean cross-entropy of the step's tokens [nats], or mean loss of its pairs
  double loss_z = 0;     // standard deviations from the last healthy steps; NaN until there are enough
  double grad_norm = 0;  // before clipping
  double grad_norm_z = 0;
  double learning_rate = 0;
  std::int64_t tokens = 0;  // trained on so far
  double seconds = 0;       // this step
  double tokens_per_second = 0;
  double limit_share = 0;  // least time that the machine needs for the step's work (octet/machine) / seconds
  double param_norm = 0;
  double data_wait = 0;           // seconds of this step spent waiting for data
  std::int64_t memory_bytes = 0;  // allocated at the step's peak
  bool skipped = false;           // the weights were not changed
  bool limited = false;           // because loss or gradient norm was above the limit of recovery
  double loss_scale = NAN;        // factor of this step's loss; NaN where there is none
  double one_token = 0;           // share of rank 0's targets that are the same token, where it is more than a half
  double mtp_loss = NAN;          // mean cross-entropy of further tokens [nats]; NaN where none are predicted
  PreferenceFigures preferences{};

  void fields(EventVisitor&);
};

/// Maxima and scales of every quantizer in one step; entry i belongs to quantizer i of RunFacts. Block layouts have many scales.
struct ScalesEvent {
  static constexpr const char* event = "scales";
  std::int64_t step = 0;
  double time = 0;
  std::vector<float> amax{}, scale_min{}, scale_max{};

  void fields(EventVisitor&);
};

/// How well the formats' ranges were used in one step; entry i belongs to quantizer i of RunFacts.
struct HealthEvent {
  static constexpr const char* event = "health";
  std::int64_t step = 0;
  double time = 0;
  std::vector<float> headroom_bits{};  // log2(largest finite value of the format / (amax * scale)); below 0 values were clipped
  std::vector<float> saturated{};      // fraction of values clipped to the largest finite one
  std::vector<float> flushed{};        // fraction of non-zero values that became 0
  std::vector<float> sqnr_db{};        // 20 log10(|x| / |x - dequantized|)
  std::vector<std::int64_t> nonfinite{};
  // Both empty where no tensor has several scales.
  std::vector<float> scale_deviation{};  // standard deviation of log2 of the scales of a tensor's blocks or rows
  std::vector<float> lossy_blocks{};     // share of a tensor's blocks that have a saturated or flushed value

  void fields(EventVisitor&);
};

/// The ranks of a run in one step: entry i belongs to rank i.
struct RanksEvent {
  static constexpr const char* event = "ranks";
  std::int64_t step = 0;
  double time = 0;
  std::vector<float> seconds{};  // of the step, without the read-out of its tables
  std::vector<float> waited{};   // of these, in collectives; NaN where the host does not see them (a GPU's)
  std::int64_t slowest = 0;      // the rank with the longest time outside of collectives
  std::int64_t sent_bytes = 0;   // by each rank

  void fields(EventVisitor&);
};
/// Seconds of a rank outside of collectives; all of the step where those are not known.
inline double busy_seconds(const RanksEvent& e, std::size_t rank) {
  return double(e.seconds[rank]) - (std::isfinite(e.waited[rank]) ? double(e.waited[rank]) : 0);
}
/// The mean over ranks of the share of a step that was spent in collectives; NaN where that is not known.
inline double exposed_share(const RanksEvent& e) {
  double sum = 0;
  for (std::size_t i = 0; i < e.seconds.size(); ++i) sum += double(e.waited[i]) / double(e.seconds[i]);
  return sum / double(e.seconds.size());
}

/// The shared scales of gradients that travel in 8 bits; entry i belongs to tensor i of RanksFacts::shared_scales.
struct SharedScalesEvent {
  static constexpr const char* event = "shared_scales";
  std::int64_t step = 0;
  double time = 0;
  std::vector<float> mu{};         // factor that leaves room for sums, as of the next step
  std::vector<float> overflow{};   // share of the sums that have the largest code
  std::vector<float> underflow{};  // share of the values that were sent as 0 although they are not

  void fields(EventVisitor&);
};

/// The loads of experts in one step: how often the tokens of all ranks chose each one.
struct ExpertsEvent {
  static constexpr const char* event = "experts";
  std::int64_t step = 0;
  double time = 0;
  std::int64_t experts = 0;            // of a layer, routed
  std::vector<std::int64_t> layers{};  // blocks that have experts
  std::vector<std::int64_t> counts{};  // [layers, experts]
  std::vector<float> bias{};           // of the choice, in the same order; empty without biases

  void fields(EventVisitor&);
};
/// The load of each expert of layer i of these, as a multiple of the layer's mean; empty where there are none.
std::vector<double> relative_loads(const ExpertsEvent&, std::size_t i);
/// The entropy of the loads of layer i of these, as a share of that of equal loads; NaN where there are none.
double load_entropy(const ExpertsEvent&, std::size_t i);

/// A pass over held-out tokens.
struct EvalEvent {
  static constexpr const char* event = "eval";
  std::int64_t step = 0;
  double time = 0;
  double loss = 0;
  std::int64_t tokens = 0;    // it is a mean over these, or over so many pairs
  double average_loss = NAN;  // the same of the averaged weights; NaN where there are none
  PreferenceFigures preferences{};

  void fields(EventVisitor&);
};

/// A text that the model continued (train.sample_every).
struct SampleEvent {
  static constexpr const char* event = "sample";
  std::int64_t step = 0;
  double time = 0;
  std::string prompt{}, text{};  // the text follows the prompt
  std::int64_t tokens = 0;       // of the text
  std::string end{};             // why it ends: "length", "end of text", "not finite" (logits)

  void fields(EventVisitor&);
};

/// An event for the user's attention: a skipped step, a non-finite amax, a signal.
struct IncidentEvent {
  static constexpr const char* event = "incident";
  std::int64_t step = 0;
  double time = 0;
  std::string kind{};  // "skipped", "nonfinite", "signal", ...
  std::string path{};  // the module it was first seen in, or ""
  std::string text{};

  void fields(EventVisitor&);
};

/// The surroundings of a run after a measured step; NaN where a number is not known.
struct MachineEvent {
  static constexpr const char* event = "machine";
  std::int64_t step = 0;
  double time = 0;
  double memory_free = NAN;       // bytes of the device that the run could still allocate
  double disk_free = NAN;         // bytes, on the file system of the run's folder
  double checkpoint_bytes = NAN;  // of the newest checkpoint
  double checkpoint_age = NAN;    // seconds since its end, or since the start of the process if there is none or that is later
  double epoch = NAN;             // passes over the data so far

  void fields(EventVisitor&);
};

/// The GPUs of a run since the last such event; entry i belongs to rank i. NaN where a rank has no GPU or its driver does not tell.
struct GpusEvent {
  static constexpr const char* event = "gpus";
  std::int64_t step = 0;
  double time = 0;
  std::vector<float> utilization{};        // mean share of the time in which a kernel ran
  std::vector<float> power{};              // mean [W]
  std::vector<float> temperature{};        // highest [degrees Celsius]
  std::vector<float> sm_clock{};           // mean [MHz]
  std::vector<float> memory_used{};        // most bytes of the device in use, by all processes
  std::vector<std::int64_t> throttling{};  // bits of throttling.hpp: all reasons for a lower clock that were seen

  void fields(EventVisitor&);
};

enum class Severity : std::uint8_t { info, warning, critical };
constexpr std::string_view name(Severity s) {
  constexpr std::string_view names[] = {"info", "warning", "critical"};
  return names[std::size_t(s)];
}

/// A rule over the other events holds (octet/health). docs/health.md lists the rules.
struct AlertEvent {
  static constexpr const char* event = "alert";
  std::int64_t step = 0;
  double time = 0;  // of the event that fired it
  std::string rule{};
  Severity severity = Severity::warning;
  std::string path{};       // the tensor with its operand, the rank, or ""
  double value = NAN;       // that was compared
  double threshold = NAN;   // with this one, the key alerts.<rule>
  std::int64_t window = 0;  // steps or measurements that the rule looked at
  std::string text{};       // the observation, with numbers
  std::string remedy{};

  void fields(EventVisitor&);
};

/// An action of recovery because of an alert, or one that it advises (octet/health). docs/health.md lists rungs and results.
struct RecoveryEvent {
  static constexpr const char* event = "recovery";
  std::int64_t step = 0;  // after which, or of the skipped step
  double time = 0;
  std::string rung{};                 // "skip", "rate", "layers", "roll_back", "stop"
  std::string result{};               // "done", "advised", "refused", "ended", "recovered"
  std::string rule{}, path{};         // of the alert that is the reason
  std::int64_t alert_step = 0;        // its step
  std::int64_t back_to = -1;          // roll_back that was done: the steps after this one follow again
  std::vector<std::string> layers{};  // of rungs `layers` and `roll_back` that were done: those in the safer recipe from now on
  std::string text{};

  void fields(EventVisitor&);
};
/// Whether the lines behind this one repeat step numbers.
inline bool repeats_steps(const RecoveryEvent& e) { return e.back_to >= 0; }

/// The last line of a run that ended by itself.
struct EndEvent {
  static constexpr const char* event = "end";
  std::int64_t step = 0;
  double time = 0;
  std::string reason{};
  double train_loss = 0;         // smoothed over the last steps
  double eval_loss = 0;          // NaN where nothing was held out
  double tokens_per_second = 0;  // median over the steps
  std::int64_t skipped = 0;
  double average_loss = NAN;  // of the averaged weights; NaN where there are none

  void fields(EventVisitor&);
};

using Event = std::variant<StepEvent, ScalesEvent, HealthEvent, RanksEvent, SharedScalesEvent, ExpertsEvent, EvalEvent, SampleEvent,
                           IncidentEvent, MachineEvent, GpusEvent, AlertEvent, RecoveryEvent, EndEvent>;

}  // namespace octet::telemetry
