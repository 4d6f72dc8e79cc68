#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/words.hpp"
#include "octet/telemetry/step_line.hpp"

namespace octet::report {
namespace {

std::string how_it_went(const RunRecord& run) {
  switch (run.facts.state) {
    case RunState::running:
      return "Unfinished (running, or killed)";
    case RunState::finished:
      return "Finished";
    case RunState::stopped:
      return "Stopped";
    case RunState::diverged:
      return "Diverged";
  }
  return "";
}

std::string run_sentence(const RunRecord& run) {
  std::string out = how_it_went(run);
  if (!run.steps.empty()) out += format(" after {} steps", grouped(run.steps.back().step));
  const double loss = final_eval_loss(run), train = final_train_loss(run);
  if (std::isfinite(loss)) return out + format(" with an evaluation loss of {}.", fixed(loss, 4));
  return out + (std::isfinite(train) ? format(" with a training loss of {}.", fixed(train, 4)) : ".");
}

void fact(Markup& m, const std::string& name, const std::string& value) {
  const auto pair = m.in("div");
  m.element("dt", name);
  m.element("dd", value);
}

void write_facts(Markup& m, const Study& study) {
  const RunFacts& run = study.groups[0].first().facts;
  std::int64_t steps = 0, tokens = 0;
  double seconds = 0;
  for (const Group& g : study.groups)
    for (const RunRecord* r : g.runs)
      if (!r->steps.empty()) {
        steps = std::max(steps, r->steps.back().step), tokens = std::max(tokens, r->steps.back().tokens);
        seconds += r->end ? r->end->time : r->steps.back().time;
      }
  const auto list = m.in("dl", {{"class", "facts"}});
  fact(m, "Model",
       format("{}, {} parameters, {} layers of width {}", model_name(run.model), scaled_text(double(run.model.parameters)),
              run.model.layers, run.model.width));
  fact(m, "Training",
       format("{} steps, {} tokens{}", grouped(steps), scaled_text(double(tokens)), study.groups.size() > 1 ? " a run" : ""));
  if (study.seeds() > 1) fact(m, "Seeds", format("{}; bands show their range", study.seeds()));
  fact(m, "Machine", format("{}, {} threads", run.machine.cpu, run.machine.threads));
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
    m.element("h1", format("{}: {} {} beside {}", model_name(study.groups[0].first().facts.model), arms, arms == 1 ? "arm" : "arms",
                           study.comparison->baseline));
    m.element("p", findings(*study.comparison), {{"class", "verdict"}});
  } else {
    m.element("h1", study.groups.size() == 1 ? study.groups[0].name : format("{} runs", study.groups.size()));
    if (study.groups.size() == 1) m.element("p", run_sentence(study.groups[0].first()), {{"class", "verdict"}});
  }
  write_facts(m, study);
}

}  // namespace octet::report
