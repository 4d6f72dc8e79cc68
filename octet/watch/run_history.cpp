#include "octet/watch/run_history.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/median.hpp"

namespace octet::watch {
namespace {

using namespace telemetry;

constexpr std::size_t recent_steps = 65, most_sample_text = std::size_t(32) << 10;

void want_length(const char* name, const std::vector<float>& list, std::size_t tensors) {
  if (list.size() != tensors)
    throw DataError(format("{} must have {} entries, one per quantizer of run.json, got {}", name, tensors, list.size()));
}

}  // namespace

RunHistory::RunHistory(std::size_t tensors, const HistoryLimits& limits)
    : limits_(limits), scales_(tensors, scale_measures, limits.tensor_cells), health_(tensors, health_measures, limits.tensor_cells) {}

void RunHistory::clear() { *this = RunHistory(scales_.tensors(), limits_); }

void RunHistory::add(std::string_view name, std::int64_t step, double value) {
  auto at = curves_.find(name);
  if (at == curves_.end()) at = curves_.emplace(std::string(name), Curve(limits_.curve_points)).first;
  at->second.add(CurvePoint::of(step, value));
}

void RunHistory::add(const StepEvent& e) {
  add("loss", e.step, e.loss), add("loss_z", e.step, e.loss_z);
  add("grad_norm", e.step, e.grad_norm), add("grad_norm_z", e.step, e.grad_norm_z);
  add("param_norm", e.step, e.param_norm), add("lr", e.step, e.learning_rate);
  add("tokens_per_second", e.step, e.tokens_per_second), add("limit_share", e.step, e.limit_share);
  add("memory", e.step, double(e.memory_bytes)), add("data_wait", e.step, e.data_wait), add("seconds", e.step, e.seconds);
  if (std::isfinite(e.loss_scale)) add("loss_scale", e.step, e.loss_scale);
  if (e.preferences.known()) add("reward_margin", e.step, e.preferences.margin()), add("reward_accuracy", e.step, e.preferences.accuracy);
  skipped_ += e.skipped;
  recent_seconds_.push_back(e.seconds);
  if (recent_seconds_.size() > recent_steps) recent_seconds_.pop_front();
  last_step_ = e;
  end_.reset();  // a resumed run continues behind its end
}

void RunHistory::add(const ScalesEvent& e) {
  const std::size_t n = scales_.tensors();
  want_length("amax", e.amax, n), want_length("scale_min", e.scale_min, n), want_length("scale_max", e.scale_max, n);
  scales_.add(e.step, {{&e.amax, &e.amax}, {&e.scale_min, &e.scale_max}});
}

void RunHistory::add(HealthEvent&& e) {
  const std::size_t n = health_.tensors();
  want_length("headroom_bits", e.headroom_bits, n), want_length("saturated", e.saturated, n), want_length("flushed", e.flushed, n),
      want_length("sqnr_db", e.sqnr_db, n);
  const std::vector<float> nonfinite(e.nonfinite.begin(), e.nonfinite.end());
  want_length("nonfinite", nonfinite, n);
  health_.add(e.step, {{&e.headroom_bits, &e.headroom_bits},
                       {&e.saturated, &e.saturated},
                       {&e.flushed, &e.flushed},
                       {&e.sqnr_db, &e.sqnr_db},
                       {&nonfinite, &nonfinite}});
  last_health_ = std::move(e);
}

void RunHistory::add(const RanksEvent& e) {
  add("exposed", e.step, exposed_share(e));
  add("slowest_busy", e.step, busy_seconds(e, std::size_t(e.slowest)));
  if (slowest_counts_.size() < e.seconds.size()) slowest_counts_.resize(e.seconds.size());
  ++slowest_counts_[std::size_t(e.slowest)];
  last_ranks_ = e;
}

void RunHistory::add(SharedScalesEvent&& e) {
  if (e.mu.empty() || e.overflow.size() != e.mu.size() || e.underflow.size() != e.mu.size())
    throw DataError("mu, overflow and underflow must have one entry per tensor of ranks.shared_scales in run.json");
  add("mu", e.step, double(*std::ranges::min_element(e.mu)));
  add("overflow", e.step, double(*std::ranges::max_element(e.overflow)));
  add("underflow", e.step, double(*std::ranges::max_element(e.underflow)));
  last_shared_scales_ = std::move(e);
}

void RunHistory::add(ExpertsEvent&& e) {
  double entropy = NAN, most = NAN;
  for (std::size_t i = 0; i < e.layers.size(); ++i) {
    entropy = std::fmin(entropy, load_entropy(e, i));
    for (const double load : relative_loads(e, i)) most = std::fmax(most, load);
  }
  add("expert_entropy", e.step, entropy), add("expert_load", e.step, most);
  last_experts_ = std::move(e);
}

void RunHistory::add(const MachineEvent& e) {
  add("memory_free", e.step, e.memory_free), add("disk_free", e.step, e.disk_free);
  last_machine_ = e;
}

void RunHistory::add(SampleEvent&& e) {
  e.prompt = shortened(std::move(e.prompt), most_sample_text), e.text = shortened(std::move(e.text), most_sample_text);
  samples_.push_back(std::move(e));
  if (samples_.size() > limits_.samples) samples_.pop_front();
}

void RunHistory::add(Incident&& incident, std::int64_t offset) {
  ++incidents_seen_;
  incidents_.push_back({std::move(incident), offset});
  if (incidents_.size() > limits_.incidents) incidents_.pop_front();
}

void RunHistory::take(Event&& event, std::int64_t offset) {
  if (auto* step = std::get_if<StepEvent>(&event)) add(*step);
  else if (auto* scales = std::get_if<ScalesEvent>(&event)) add(*scales);
  else if (auto* health = std::get_if<HealthEvent>(&event)) add(std::move(*health));
  else if (auto* ranks = std::get_if<RanksEvent>(&event)) add(*ranks);
  else if (auto* shared = std::get_if<SharedScalesEvent>(&event)) add(std::move(*shared));
  else if (auto* experts = std::get_if<ExpertsEvent>(&event)) add(std::move(*experts));
  else if (auto* machine = std::get_if<MachineEvent>(&event)) add(*machine);
  else if (auto* sample = std::get_if<SampleEvent>(&event)) add(std::move(*sample));
  else if (auto* end = std::get_if<EndEvent>(&event)) end_ = std::move(*end);
  else if (auto incident = as_incident(event)) add(std::move(*incident), offset);
  else if (auto* eval = std::get_if<EvalEvent>(&event)) {
    add("eval_loss", eval->step, eval->loss);
    if (std::isfinite(eval->average_loss)) add("average_loss", eval->step, eval->average_loss);
    last_eval_ = *eval;
  }
}

double RunHistory::typical_step_seconds() const { return median_of({recent_seconds_.begin(), recent_seconds_.end()}); }

}  // namespace octet::watch
