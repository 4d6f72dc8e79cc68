#include "octet/watch/run_history.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/median.hpp"
#include "octet/telemetry/metric.hpp"

namespace octet::watch {
namespace {

using namespace telemetry;

constexpr std::size_t recent_steps = 65, most_sample_text = std::size_t(32) << 10;

void want_length(const char* name, const std::vector<float>& list, std::size_t tensors) {
  if (list.size() != tensors)
    throw DataError(format("{} must have {} entries, one per quantizer of run.json, got {}", name, tensors, list.size()));
}

}  // namespace

std::vector<CurveValue> curve_values(const Event& event) {
  std::vector<CurveValue> out;
  for (const Metric& m : metrics())
    if (const std::optional<double> x = *m.name == 0 ? std::nullopt : m.of(event)) out.push_back({m.name, *x});
  return out;
}

RunHistory::RunHistory(std::size_t tensors, const HistoryLimits& limits)
    : limits_(limits), scales_(tensors, scale_measures, limits.tensor_cells), health_(tensors, health_measures, limits.tensor_cells) {}

void RunHistory::clear() { *this = RunHistory(scales_.tensors(), limits_); }

void RunHistory::add(std::string_view name, std::int64_t step, double value) {
  auto at = curves_.find(name);
  if (at == curves_.end()) at = curves_.emplace(std::string(name), Curve(limits_.curve_points)).first;
  at->second.add(CurvePoint::of(step, value));
}

void RunHistory::add(const StepEvent& e) {
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
  const auto or_unknown = [n](const std::vector<float>& list) { return list.empty() ? std::vector<float>(n, NAN) : list; };
  const std::vector<float> spread = or_unknown(e.scale_deviation), lossy = or_unknown(e.lossy_blocks);
  want_length("scale_deviation", spread, n), want_length("lossy_blocks", lossy, n);
  health_.add(e.step, {{&e.headroom_bits, &e.headroom_bits},
                       {&e.saturated, &e.saturated},
                       {&e.flushed, &e.flushed},
                       {&e.sqnr_db, &e.sqnr_db},
                       {&nonfinite, &nonfinite},
                       {&spread, &spread},
                       {&lossy, &lossy}});
  last_health_ = std::move(e);
}

void RunHistory::add(const RanksEvent& e) {
  if (slowest_counts_.size() < e.seconds.size()) slowest_counts_.resize(e.seconds.size());
  ++slowest_counts_[std::size_t(e.slowest)];
  last_ranks_ = e;
}

void RunHistory::add(SharedScalesEvent&& e) {
  if (e.mu.empty() || e.overflow.size() != e.mu.size() || e.underflow.size() != e.mu.size())
    throw DataError("mu, overflow and underflow must have one entry per tensor of ranks.shared_scales in run.json");
  last_shared_scales_ = std::move(e);
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
  const std::int64_t step = std::visit([](const auto& e) { return e.step; }, event);
  const std::vector<CurveValue> values = curve_values(event);
  if (auto* last = std::get_if<StepEvent>(&event)) add(*last);
  else if (auto* scales = std::get_if<ScalesEvent>(&event)) add(*scales);
  else if (auto* health = std::get_if<HealthEvent>(&event)) add(std::move(*health));
  else if (auto* ranks = std::get_if<RanksEvent>(&event)) add(*ranks);
  else if (auto* shared = std::get_if<SharedScalesEvent>(&event)) add(std::move(*shared));
  else if (auto* experts = std::get_if<ExpertsEvent>(&event)) last_experts_ = std::move(*experts);
  else if (auto* machine = std::get_if<MachineEvent>(&event)) last_machine_ = *machine;
  else if (auto* gpus = std::get_if<GpusEvent>(&event)) last_gpus_ = std::move(*gpus);
  else if (auto* sample = std::get_if<SampleEvent>(&event)) add(std::move(*sample));
  else if (auto* end = std::get_if<EndEvent>(&event)) end_ = std::move(*end);
  else if (auto* eval = std::get_if<EvalEvent>(&event)) last_eval_ = *eval;
  else if (auto incident = as_incident(event)) add(std::move(*incident), offset);
  for (const CurveValue& value : values) add(value.curve, step, value.value);
}

double RunHistory::typical_step_seconds() const { return median_of({recent_seconds_.begin(), recent_seconds_.end()}); }

}  // namespace octet::watch
