#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/words.hpp"
#include "octet/telemetry/step_line.hpp"

namespace octet::telemetry::report {
namespace {

std::string how_it_went(const RunRecord& run) {
  switch (run.facts.state) {
    case RunState::running: return "Unfinished (running, or killed)";
    case RunState::finished: return "Finished";
    case RunState::stopped: return "Stopped";
    case RunState::diverged: return "Diverged";
  }
  return "";
}

std::string run_sentence(const RunRecord& run) {
  std::string out = how_it_went(run);
  if (!run.steps.empty()) out += format(" after {} steps", grouped(run.steps.back().step));
  const double loss = final_eval_loss(run), train = final_train_loss(run);
  if (std::isfinite(loss)) out += format(" with an evaluation loss of {}", fixed(loss, 4));
  else if (std::isfinite(train)) out += format(" with a training loss of {}", fixed(train, 4));
  const std::string few = few_eight_bits(run.facts.eight_bit_share);
  return out + (few.empty() ? "." : ", " + few + ".");
}

/// "5 alerts, 2 of them critical; the first is loss_spike in step 9." of one run, "5 alerts in a, 1 in b." of several; "" of
/// none.
std::string alerts_sentence(const Study& study) {
  std::vector<std::string> parts;
  const AlertEvent* first = nullptr;
  std::int64_t critical = 0, runs = 0;
  for (const auto* groups : {&study.groups, &study.twins})
    for (const Group& g : *groups) {
      std::int64_t count = 0;
      for (const RunRecord* run : g.runs) {
        ++runs, count += std::int64_t(run->alerts.size()) + run->alerts_left_out;
        for (const AlertEvent& a : run->alerts) {
          critical += a.severity == Severity::critical;
          if (first == nullptr) first = &a;
        }
      }
      if (count == 0) continue;
      const std::string words = parts.empty() ? (count == 1 ? " alert" : " alerts") : "";
      parts.push_back(grouped(count) + words + (study.groups.size() + study.twins.size() > 1 ? " in " + g.name : ""));
    }
  if (parts.empty()) return "";
  std::string out = joined(parts);
  if (runs > 1 || first == nullptr) return out + ".";
  if (critical > 0) out += format(", {} of them critical", critical);
  return out + format("; the first is {} in step {}.", first->rule, grouped(first->step));
}

// The headline of a run with alerts must not read like that of one without.
std::string with_alerts(const std::string& text, const Study& study) {
  const std::string alerts = alerts_sentence(study);
  return text + (text.empty() || alerts.empty() ? "" : " ") + alerts;
}

void fact(Markup& m, const std::string& name, const std::string& value) {
  const auto pair = m.in("div");
  m.element("dt", name);
  m.element("dd", value);
}

std::string model_text(const Group& g) {
  const ModelFacts& model = g.first().facts.model;
  return format("{}, {} parameters, {} layers of width {}", model_name(model), scaled_text(double(model.parameters)), model.layers,
                model.width);
}

bool one_model(const Study& study) {
  return std::all_of(study.groups.begin(), study.groups.end(),
                     [&](const Group& g) { return model_text(g) == model_text(study.groups[0]); });
}

std::string length_text(const Group& g) {
  const auto& steps = g.first().steps;
  if (steps.empty()) return "no step";
  return format("{} steps, {} tokens", grouped(steps.back().step), scaled_text(double(steps.back().tokens)));
}

std::string machine_text(const Group& g) {
  const MachineFacts& machine = g.first().facts.machine;
  return format("{}, {}", machine.cpu, counted(machine.threads, "thread"));
}

double seconds_of(const RunRecord& run) { return run.end ? run.end->time : run.steps.empty() ? 0 : run.steps.back().time; }

void write_facts(Markup& m, const Study& study) {
  const RunFacts& run = study.groups[0].first().facts;
  double seconds = 0;
  for (const auto* groups : {&study.groups, &study.twins})
    for (const Group& g : *groups)
      for (const RunRecord* r : g.runs) seconds += seconds_of(*r);
  const auto list = m.in("dl", {{"class", "facts"}});
  fact(m, "Model", facts_of_all(study, model_text));
  fact(m, "Training", facts_of_all(study, length_text) + (study.groups.size() > 1 ? " per run" : ""));
  fact(m, "Peak learning rate", facts_of_all(study, [](const Group& g) { return peak_rate_text(g.first()); }));
  if (study.seeds() > 1) fact(m, "Seeds", format("{}; bands show their range", study.seeds()));
  fact(m, "Machine", facts_of_all(study, machine_text));
  fact(m, "Matmul limit", format("{}FLOP/s in {}", scaled_text(run.machine.gemm_limit_flops), run.machine.gemm_compute));
  fact(m, "Time",
       duration_text(seconds) + (study.groups.size() > 1 ? " in all" : "") + (run.started.empty() ? "" : ", from " + run.started));
}

}  // namespace

void write_header(Markup& m, const Study& study) {
  const auto header = m.in("header");
  if (study.groups.empty()) {
    m.element("h1", "No runs");
    return;
  }
  m.element("p", "Octet report", {{"class", "kicker"}});
  if (study.comparison) {
    const std::size_t arms = study.groups.size() - (study.baseline() ? 1 : 0);
    m.element("h1", format("{}: {} beside {}", one_model(study) ? model_name(study.groups[0].first().facts.model) : "Several models",
                           counted((long long)arms, "arm"), study.comparison->baseline));
    m.element("p", with_alerts(findings(*study.comparison), study), {{"class", "verdict"}});
  } else {
    m.element("h1", study.groups.size() == 1 ? study.groups[0].name : format("{} runs", study.groups.size()));
    const std::string went = with_alerts(study.groups.size() == 1 ? run_sentence(study.groups[0].first()) : "", study);
    if (!went.empty()) m.element("p", went, {{"class", "verdict"}});
  }
  write_facts(m, study);
}

}  // namespace octet::telemetry::report
