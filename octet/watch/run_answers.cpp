#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ranges>

#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/quantization_loss.hpp"
#include "octet/telemetry/run_link.hpp"
#include "octet/telemetry/throttling.hpp"
#include "octet/watch/answers.hpp"

// The list of runs, and the summary of one.

namespace octet::watch {
namespace {

using json::Object, json::Array, json::Value;

double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", x);
  return std::atof(text);
}

template <class E>
Value event_object(const std::optional<E>& e) {
  return e ? Value(telemetry::event_json(*e)) : Value();
}

Value memory_object(const telemetry::MemoryUse& memory) {
  Array categories;
  for (const auto& c : memory.categories) categories.push_back(Object{{"name", c.name}, {"bytes", c.bytes}});
  return Object{{"peak", memory.peak}, {"categories", std::move(categories)}};
}

Value tensors_array(const telemetry::RunFacts& facts) {
  Array tensors;
  for (const auto& q : facts.quantizers)
    tensors.push_back(Object{{"path", q.path},
                             {"operand", q.operand},
                             {"format", q.format},
                             {"block", q.block},
                             {"rounding_sqnr", number_json(telemetry::rounding_sqnr(q.format))}});
  return tensors;
}

Value plan_array(const telemetry::RunFacts& facts) {
  Array plan;
  for (const auto& row : facts.plan) plan.push_back(Object{{"path", row.path}, {"precision", row.precision}, {"why", row.why}});
  return plan;
}

Value ranks_object(const RunHistory& history) {
  const auto& last = history.last_ranks();
  if (!last) return {};
  return Object{{"step", last->step},
                {"seconds", json::array_of(last->seconds)},
                {"waited", json::array_of(last->waited)},
                {"slowest", last->slowest},
                {"slowest_counts", json::array_of(history.slowest_counts())},
                {"sent_bytes", last->sent_bytes},
                {"exposed", number_json(exposed_share(*last))}};
}

// The shared scales of sums, of each tensor.
Value shared_scales_array(const WatchedRun& run) {
  const auto& last = run.history().last_shared_scales();
  const auto& tensors = run.facts().ranks.shared_scales;
  if (!last || last->mu.size() != tensors.size()) return {};
  Array out;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    out.push_back(Object{{"tensor", tensors[i]},
                         {"mu", number_json(double(last->mu[i]))},
                         {"overflow", number_json(double(last->overflow[i]))},
                         {"underflow", number_json(double(last->underflow[i]))}});
  return Object{{"step", last->step}, {"tensors", std::move(out)}};
}

Value gpus_object(const std::optional<telemetry::GpusEvent>& e) {
  if (!e) return {};
  Object out = telemetry::event_json(*e);
  Array reasons;
  for (const std::int64_t bits : e->throttling) reasons.push_back(telemetry::throttling_text(bits));
  out.push_back({"reasons", std::move(reasons)});
  return out;
}

// Seconds until the last planned step at the pace of the last steps; null where the number of steps is not planned.
Value seconds_left(const WatchedRun& run) {
  const auto& last = run.history().last_step();
  if (!last || run.facts().steps == 0 || run.condition() != Condition::running) return {};
  return number_json(double(run.facts().steps - last->step) * run.history().typical_step_seconds());
}

}  // namespace

Value number_json(double x) { return std::isfinite(x) ? Value(rounded(x)) : Value(); }

void append_number(Array& list, double x) {
  if (std::isfinite(x)) list.emplace_back(rounded(x));
  else list.emplace_back();
}

Value runs_answer(Runs& runs) {
  Array all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    WatchedRun& run = runs.at(i);
    run.refresh();
    const auto& step = run.glance().step;
    all.push_back(Object{{"run", i},
                         {"name", run.name()},
                         {"identity", telemetry::identity_of(run.facts())},
                         {"recipe", run.facts().recipe},
                         {"model", run.facts().model.size},
                         {"condition", to_text(run.condition())},
                         {"idle", number_json(run.idle_seconds())},
                         {"steps", run.facts().steps},
                         {"started", run.facts().started},
                         {"problem", run.problem()},
                         {"last", event_object(step)},
                         {"eval", event_object(run.glance().eval)}});
  }
  return Object{{"runs", std::move(all)}};
}

Value metrics_answer() {
  Array all;
  for (const telemetry::Metric& m : telemetry::metrics())
    if (*m.name != 0) all.push_back(Object{{"name", m.name}, {"title", m.title}, {"unit", m.unit}});
  return Object{{"metrics", std::move(all)}};
}

Value samples_answer(const WatchedRun& run) {
  Array list;
  for (const telemetry::SampleEvent& e : std::views::reverse(run.history().samples())) list.push_back(telemetry::event_json(e));
  return Object{{"samples", std::move(list)}};
}

Value summary_answer(const WatchedRun& run) {
  const telemetry::RunFacts& facts = run.facts();
  const RunHistory& history = run.history();
  const auto& step = history.last_step() && run.complete() ? history.last_step() : run.glance().step;
  const auto& m = facts.model;
  return Object{{"name", run.name()},
                {"folder", run.folder()},
                {"recipe", facts.recipe},
                {"seed", facts.seed},
                {"condition", to_text(run.condition())},
                {"idle", number_json(run.idle_seconds())},
                {"problem", run.problem()},
                {"complete", run.complete()},
                {"share_read", number_json(run.share_read())},
                {"started", facts.started},
                {"steps", facts.steps},
                {"tokens_per_step", facts.tokens_per_step},
                {"seconds_left", seconds_left(run)},
                {"model", Object{{"family", m.family},
                                 {"size", m.size},
                                 {"parameters", m.parameters},
                                 {"layers", m.layers},
                                 {"width", m.width},
                                 {"context", m.context}}},
                {"machine", Object{{"name", facts.machine.cpu},
                                   {"threads", facts.machine.threads},
                                   {"gemm_limit_flops", number_json(facts.machine.gemm_limit_flops)}}},
                {"flops_per_step", number_json(facts.flops_per_step)},
                {"memory", memory_object(facts.memory)},
                {"ranks_started", facts.ranks.started},
                {"ranks", ranks_object(history)},
                {"shared_scales", shared_scales_array(run)},
                {"experts", event_object(history.last_experts())},
                {"surroundings", event_object(history.last_machine())},
                {"gpus", gpus_object(history.last_gpus())},
                {"report", !run.report_path().empty()},
                {"tensors", tensors_array(facts)},
                {"plan", plan_array(facts)},
                {"config", json::parse({.text = facts.config_json, .file = "run.json"})},
                {"last", event_object(step)},
                {"eval", event_object(run.complete() ? history.last_eval() : run.glance().eval)},
                {"end", event_object(run.complete() ? history.end() : run.glance().end)},
                {"skipped", history.skipped()},
                {"incidents", history.incidents_seen()},
                {"news", run.news().next()}};
}

}  // namespace octet::watch
