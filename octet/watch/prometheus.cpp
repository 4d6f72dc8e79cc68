#include "octet/watch/prometheus.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "octet/base/text.hpp"

namespace octet::watch {
namespace {

// A label's value: backslash, quote and newline are escaped; other control characters are shown as printable() does.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string sample(double x) { return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "+Inf" : "-Inf") : shortest(x); }

double worst(const std::vector<float>& values, bool smallest) {
  double out = NAN;
  for (const float x : values)
    if (std::isfinite(x) && (std::isnan(out) || (smallest ? double(x) < out : double(x) > out))) out = double(x);
  return out;
}

struct Gauge {
  const char *name, *help;
  std::function<double(const WatchedRun&)> value;  // NaN: the run has none, and no sample is written
};

std::function<double(const WatchedRun&)> of_step(double (*value)(const telemetry::StepEvent&)) {
  return [value](const WatchedRun& run) { return run.glance().step ? value(*run.glance().step) : NAN; };
}
std::function<double(const WatchedRun&)> of_machine(double telemetry::MachineEvent::*value) {
  return [value](const WatchedRun& run) { return run.glance().machine ? (*run.glance().machine).*value : NAN; };
}
std::function<double(const WatchedRun&)> of_health(std::vector<float> telemetry::HealthEvent::*list, bool smallest) {
  return [list, smallest](const WatchedRun& run) { return run.glance().health ? worst((*run.glance().health).*list, smallest) : NAN; };
}

const std::vector<Gauge>& gauges() {
  using telemetry::StepEvent, telemetry::HealthEvent, telemetry::MachineEvent;
  static const std::vector<Gauge> all = {
      {"octet_step", "Optimizer steps done.", of_step([](const StepEvent& e) { return double(e.step); })},
      {"octet_planned_steps", "Planned optimizer steps; 0 if time limits the run.",
       [](const WatchedRun& run) { return double(run.facts().steps); }},
      {"octet_tokens", "Tokens trained on.", of_step([](const StepEvent& e) { return double(e.tokens); })},
      {"octet_loss", "Mean cross-entropy of the last step in nats per token.", of_step([](const StepEvent& e) { return e.loss; })},
      {"octet_loss_z", "Distance of the loss from the last healthy steps in standard deviations.",
       of_step([](const StepEvent& e) { return e.loss_z; })},
      {"octet_eval_loss", "Loss of the last evaluation in nats per token.",
       [](const WatchedRun& run) { return run.glance().eval ? run.glance().eval->loss : NAN; }},
      {"octet_gradient_norm", "Norm of all gradients before clipping.", of_step([](const StepEvent& e) { return e.grad_norm; })},
      {"octet_parameter_norm", "Norm of all parameters.", of_step([](const StepEvent& e) { return e.param_norm; })},
      {"octet_learning_rate", "Learning rate.", of_step([](const StepEvent& e) { return e.learning_rate; })},
      {"octet_loss_scale", "Factor of the loss; absent without loss scaling.", of_step([](const StepEvent& e) { return e.loss_scale; })},
      {"octet_reward_margin", "Reward of chosen less that of rejected answers; absent unless a run learns preferences.",
       of_step([](const StepEvent& e) { return e.preferences.margin(); })},
      {"octet_reward_accuracy", "Share of pairs whose chosen answer has the larger reward.",
       of_step([](const StepEvent& e) { return e.preferences.accuracy; })},
      {"octet_tokens_per_second", "Tokens per second of the last step.", of_step([](const StepEvent& e) { return e.tokens_per_second; })},
      {"octet_limit_share", "Least time of the step on this machine divided by its time.",
       of_step([](const StepEvent& e) { return e.limit_share; })},
      {"octet_step_seconds", "Seconds of the last step.", of_step([](const StepEvent& e) { return e.seconds; })},
      {"octet_data_wait_seconds", "Seconds of the last step spent waiting for data.",
       of_step([](const StepEvent& e) { return e.data_wait; })},
      {"octet_memory_bytes", "Bytes held at the peak of the last step.",
       of_step([](const StepEvent& e) { return double(e.memory_bytes); })},
      {"octet_memory_free_bytes", "Bytes of the device that the run could still allocate.", of_machine(&MachineEvent::memory_free)},
      {"octet_disk_free_bytes", "Free bytes on the file system of the run's folder.", of_machine(&MachineEvent::disk_free)},
      {"octet_checkpoint_age_seconds", "Age of the newest checkpoint at the last measurement, or seconds since the process started.",
       of_machine(&MachineEvent::checkpoint_age)},
      {"octet_epoch", "Passes over the data.", of_machine(&MachineEvent::epoch)},
      {"octet_saturated_max", "Largest fraction of clipped values of a tensor.", of_health(&HealthEvent::saturated, false)},
      {"octet_flushed_max", "Largest fraction of values of a tensor that became 0.", of_health(&HealthEvent::flushed, false)},
      {"octet_headroom_min", "Smallest headroom of a tensor in bits.", of_health(&HealthEvent::headroom_bits, true)},
      {"octet_sqnr_db_min", "Smallest signal to quantization noise ratio of a tensor in dB.", of_health(&HealthEvent::sqnr_db, true)},
      {"octet_idle_seconds", "Seconds since the last event was written.", [](const WatchedRun& run) { return run.idle_seconds(); }},
  };
  return all;
}

constexpr std::array<Condition, 7> conditions = {Condition::running,  Condition::stalled, Condition::silent,  Condition::crashed,
                                                 Condition::finished, Condition::stopped, Condition::diverged};

}  // namespace

std::string prometheus_text(Runs& runs) {
  std::string out;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs.at(i).refresh();
    labels.push_back(format("run=\"{}\",name=\"{}\",recipe=\"{}\"", i, label(runs.at(i).name()), label(runs.at(i).facts().recipe)));
  }
  for (const Gauge& gauge : gauges()) {
    out += format("# HELP {} {}\n# TYPE {} gauge\n", gauge.name, gauge.help, gauge.name);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (const double x = gauge.value(runs.at(i)); !std::isnan(x))
        out += std::string(gauge.name) + "{" + labels[i] + "} " + sample(x) + "\n";
  }
  out += "# HELP octet_condition 1 for the state of the run, else 0.\n# TYPE octet_condition gauge\n";
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Condition c : conditions)
      out += "octet_condition{" + labels[i] + ",condition=\"" + to_text(c) + "\"} " + (runs.at(i).condition() == c ? "1\n" : "0\n");
  return out;
}

}  // namespace octet::watch
