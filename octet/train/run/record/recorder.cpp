#include "octet/train/run/record/recorder.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/telemetry/event_line.hpp"

namespace octet::train {

Recorder::Recorder(std::string folder, const std::vector<scaling::Slot>& quantizers, Console::Kind console, const Watch& watch)
    : folder_(std::move(folder)),
      run_(watch.run),
      quantizers_(quantizers),
      metrics_(folder_.empty() ? "" : folder_ + "/metrics.jsonl"),
      console_(console),
      started_(monotonic_seconds()),
      surroundings_(folder_),
      monitor_(watch.alerts, watch.subject),
      policy_(watch.recovery, watch.alerts, watch.subject) {
  use(quantizers);
  const health::AlertsConfig& alerts = watch.alerts;
  if (alerts.enabled && !alerts.command.empty())
    command_.emplace(alerts.command, alerts.command_seconds, [](const std::string& text) { log::warn("{}", text); });
}

Recorder::Watch watch_of(const RunConfig& config, const telemetry::RunFacts& facts, bool decides) {
  Recorder::Watch out{.alerts = config.alerts,
                      .recovery = config.recovery,
                      .subject = {.quantizers = facts.quantizers,
                                  .shared_scales = facts.ranks.shared_scales,
                                  .steps = facts.steps,
                                  .checkpoint_steps = config.checkpoint.every,
                                  .checkpoint_seconds = 60 * config.checkpoint.minutes},
                      .run = facts.name};
  if (!decides) out.alerts.enabled = false, out.recovery.mode = health::RecoveryConfig::Mode::off;
  return out;
}

void Recorder::start_clock(double elapsed) { started_ = monotonic_seconds() - elapsed; }

double Recorder::seconds() const { return monotonic_seconds() - started_; }

void Recorder::open_board(const telemetry::RunFacts& facts, std::int64_t step, std::int64_t skipped) {
  if (folder_.empty()) return;
  board_.emplace(folder_, facts.quantizers, step, skipped, facts.ranks.shared_scales);
  board_->add_plan(step, facts.plan);
  metrics_.mirror([this](const telemetry::Event& event) { board_->add(event); });
}

void Recorder::emit(const telemetry::Event& event) {
  metrics_.emit(event);
  for (const telemetry::AlertEvent& fired : monitor_.take(event)) alert(fired);
  if (const auto* step = std::get_if<telemetry::StepEvent>(&event)) recovery(policy_.take(*step));
}

void Recorder::alert(const telemetry::AlertEvent& a) {
  metrics_.emit(a);
  policy_.take(a);
  if (command_) command_->send(telemetry::alert_message(a, run_, folder_));
  if (a.rule == "nonfinite") return;  // its incident was shown
  console_.note(format("step {}  {} {}: {}\n  {}", a.step, telemetry::name(a.severity), a.rule, a.text, a.remedy));
}

void Recorder::recovery(const health::Policy::Events& events) {
  for (const telemetry::RecoveryEvent& e : events) {
    metrics_.emit(e);
    console_.note(format("step {}  recovery, {} {}: {}", e.step, e.rung, e.result, e.text));
  }
}

void Recorder::use(const std::vector<scaling::Slot>& quantizers) {
  in_readout_.clear();
  for (scaling::Slot& mine : quantizers_) {
    const auto now =
        std::ranges::find_if(quantizers, [&](const scaling::Slot& s) { return s.path == mine.path && s.operand == mine.operand; });
    in_readout_.push_back(now == quantizers.end() ? -1 : int(now - quantizers.begin()));
    if (now != quantizers.end()) mine.format = now->format;
  }
}

void Recorder::forget_layers(std::int64_t step, const std::string& changes) {
  policy_.forget_layers();
  incident(step, "layers", format("recovery does not act any more, and layers returned to their own precision: {}", changes));
}

void Recorder::answer(const health::Answer& a) { recovery(policy_.answer(a)); }

void Recorder::incident(std::int64_t step, const std::string& kind, const std::string& text) {
  emit(telemetry::IncidentEvent{.step = step, .time = seconds(), .kind = kind, .path = "", .text = text});
}

void Recorder::warn(std::int64_t step, const std::string& kind, const std::string& text) {
  log::warn("{}", text);
  incident(step, kind, text);
}

void Recorder::skipped(std::int64_t step, const std::string& path, int rank, const optim::LossScale::Move& scale) {
  std::string text = format("step {} skipped: {}{} is not finite; weights unchanged", step, path.empty() ? "the gradient norm" : path,
                            rank < 0 ? "" : format(" on rank {}", rank));
  if (scale.moves()) text += format("; overflow, loss scale {}", scale.text());
  else if (scale.now != 0) text += format("; the loss scale stays at {}", optim::scale_text(double(scale.now)));
  emit(telemetry::IncidentEvent{.step = step, .time = seconds(), .kind = "skipped", .path = path, .text = text});
  console_.note(text);
}

void Recorder::loss_scale(std::int64_t step, const optim::LossScale::Move& scale) {
  if (!scale.moves()) return;
  incident(step, "loss_scale", format("after step {} loss scale {}", step, scale.text()));
}

void Recorder::scales(std::int64_t step, const Readout& shown) {
  if (quantizers_.empty()) return;
  telemetry::ScalesEvent e{.step = step, .time = seconds()};
  for (const int at : in_readout_) {
    const ops::QuantizeHealth h = at < 0 ? ops::QuantizeHealth{} : shown.health[std::size_t(at)];
    e.amax.push_back(at < 0 ? NAN : shown.amax[std::size_t(at)]);
    e.scale_min.push_back(at < 0 ? NAN : h.scale_min), e.scale_max.push_back(at < 0 ? NAN : h.scale_max);
  }
  emit(e);
}

void Recorder::health(std::int64_t step, const Readout& shown) {
  if (quantizers_.empty()) return;
  telemetry::HealthEvent e{.step = step, .time = seconds()};
  for (std::size_t i = 0; i < quantizers_.size(); ++i) {
    if (in_readout_[i] < 0) {
      for (std::vector<float>* list : {&e.headroom_bits, &e.saturated, &e.flushed, &e.sqnr_db, &e.scale_deviation, &e.lossy_blocks})
        list->push_back(NAN);
      e.nonfinite.push_back(0);
      continue;
    }
    const ops::QuantizeHealth& h = shown.health[std::size_t(in_readout_[i])];
    const double values = double(std::max<std::int64_t>(h.values, 1)), amax = shown.amax[std::size_t(in_readout_[i])];
    // The block with the largest value has the smallest scale.
    e.headroom_bits.push_back(float(std::log2(double(format_max(quantizers_[i].format)) / (amax * h.scale_min))));
    e.saturated.push_back(float(double(h.saturated) / values));
    e.flushed.push_back(float(double(h.flushed) / values));
    e.sqnr_db.push_back(float(10 * std::log10(h.signal / h.noise)));
    e.nonfinite.push_back(h.nonfinite);
    e.scale_deviation.push_back(float(h.blocks.scale_deviation())), e.lossy_blocks.push_back(float(h.blocks.lossy_share()));
  }
  for (std::vector<float>* list : {&e.scale_deviation, &e.lossy_blocks})
    if (std::ranges::none_of(*list, [](float x) { return std::isfinite(x); })) list->clear();
  emit(e);
}

void Recorder::ranks(std::int64_t step, const Accord& accord, std::int64_t sent_bytes) {
  if (accord.ranks.size() == 1) return;  // the step's own event has all
  telemetry::RanksEvent e{.step = step, .time = seconds(), .sent_bytes = sent_bytes};
  double longest = -1;
  for (const Accord& rank : accord.ranks) {
    e.seconds.push_back(float(rank.seconds)), e.waited.push_back(float(rank.waited));
    const std::size_t last = e.seconds.size() - 1;
    if (const double busy = busy_seconds(e, last); busy > longest) longest = busy, e.slowest = std::int64_t(last);
  }
  emit(e);
}

void Recorder::gpus(std::int64_t step, const Accord& accord) {
  telemetry::GpusEvent e{.step = step, .time = seconds()};
  bool known = false;
  for (const Accord& rank : accord.ranks) {
    const machine::GpuReading& gpu = rank.gpu;
    known = known || gpu.known();
    e.utilization.push_back(float(gpu.utilization)), e.power.push_back(float(gpu.power));
    e.temperature.push_back(float(gpu.temperature)), e.sm_clock.push_back(float(gpu.sm_clock));
    e.memory_used.push_back(float(gpu.memory_used)), e.throttling.push_back(gpu.throttling);
  }
  if (known) emit(e);
}

void Recorder::machine(std::int64_t step, Device device, double epoch) {
  telemetry::MachineEvent e = surroundings_.measure(device);
  e.step = step, e.time = seconds(), e.epoch = epoch;
  emit(e);
}

void Recorder::experts(std::int64_t step, const std::vector<std::int64_t>& layers, const Readout& shown) {
  if (layers.empty()) return;
  telemetry::ExpertsEvent e{.step = step, .time = seconds(), .layers = layers, .bias = shown.expert_bias};
  e.counts.assign(shown.expert_counts.begin(), shown.expert_counts.end());
  e.experts = std::int64_t(e.counts.size() / layers.size());
  emit(e);
}

void Recorder::shared_scales(std::int64_t step, std::span<const parallel::ScaleUse> uses) {
  if (uses.empty()) return;
  telemetry::SharedScalesEvent e{.step = step, .time = seconds()};
  for (const parallel::ScaleUse& use : uses)
    e.mu.push_back(float(use.mu)), e.overflow.push_back(float(use.overflow)), e.underflow.push_back(float(use.underflow));
  emit(e);
}

void Recorder::step(telemetry::StepEvent e, const telemetry::LineContext& context) {
  e.loss_z = losses_.z_score(e.loss), e.grad_norm_z = norms_.z_score(e.grad_norm);
  if (!e.skipped) losses_.add(e.loss), norms_.add(e.grad_norm);
  emit(e);
  console_.step(e, context);
}

void Recorder::evaluation(telemetry::EvalEvent e, const std::string& line) {
  e.time = seconds();
  emit(e);
  console_.note(line);
}

void Recorder::sample(telemetry::SampleEvent e) {
  e.time = seconds();
  emit(e);
  console_.note(format("step {}  sample \"{}\"", e.step, printable(e.prompt + e.text)));
}

void Recorder::visit_state(StateVisitor& v) {
  v.section("metrics", metrics_);
  v.section("loss_window", losses_);
  v.section("grad_norm_window", norms_);
  if (v.has("alerts")) v.section("alerts", monitor_);
  if (v.has("recovery")) v.section("recovery", policy_);
}

void Recorder::keep_state(StateVisitor& v) {
  for (const char* section : {"metrics", "loss_window", "grad_norm_window", "alerts", "recovery"}) v.unused(section);
}

}  // namespace octet::train
