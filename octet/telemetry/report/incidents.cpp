#include "octet/base/text.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/run_link.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::size_t most_incidents = 200;
constexpr std::int64_t most_rows = 200;

template <class E>
std::string address(const Study& study, const RunRecord& run, const E& e) {
  return incident_address(study.watch_address, run.facts, e.step, kind_of(e));
}

// The step, with a link to its page where there is an address.
template <class E>
void write_step(Markup& m, const Study& study, const RunRecord& run, const E& e, const std::string& text) {
  if (study.watch_address.empty()) m.text(text);
  else m.element("a", text, {{"href", address(study, run, e)}});
}

void write_about_links(Markup& m, const Study& study) {
  if (study.watch_address.empty()) return;
  m.element("p", format("A step links to its page at {}, while octet watch serves the run there.", study.watch_address),
            {{"class", "soft"}});
}

void write_row(Markup& m, const Study& study, const RunRecord& run, const AlertEvent& e) {
  const auto row = m.in("tr");
  const auto cell = [&](const char* name, const std::string& text, const char* classes) {
    m.element("td", text, {{"data-label", name}, {"class", classes}});
  };
  {
    const auto step = m.in("td", {{"data-label", "Step"}, {"class", "number"}});
    write_step(m, study, run, e, grouped(e.step));
  }
  cell("Run", run.facts.name, "");
  {
    const auto severity = m.in("td", {{"data-label", "Severity"}});
    m.element("span", name(e.severity), {{"class", e.severity == Severity::info ? "badge open" : "badge bad"}});
  }
  cell("Rule", e.rule, "code");
  cell("Tensor", e.path, "code");
  cell("Observation", e.text, "");
  cell("Remedy", e.remedy, "");
}

void write_row(Markup& m, const Study& study, const RunRecord& run, const RecoveryEvent& e) {
  const auto item = m.in("li");
  {
    const auto step = m.in("span", {{"class", "number"}});
    write_step(m, study, run, e, format("step {}", grouped(e.step)));
  }
  m.element("span", run.facts.name, {{"class", "name"}});
  const bool over = e.result == "ended" || e.result == "recovered";
  m.element("span", kind_of(e), {{"class", over ? "badge open" : "badge bad"}});
  if (!e.rule.empty()) m.element("span", format("because of {} in step {}", e.rule, grouped(e.alert_step)), {{"class", "soft"}});
  if (!e.path.empty()) m.element("code", e.path);
  m.element("span", e.text, {{"class", "words"}});
}

}  // namespace

void write_incidents(Markup& m, const Study& study) {
  const auto section = m.in("section");
  m.element("h2", "Incidents");
  std::size_t shown = 0;
  std::int64_t left_out = 0;
  for (const Group& group : study.groups)
    for (const RunRecord* run : group.runs) left_out += run->incidents_left_out + std::int64_t(run->incidents.size());
  if (left_out == 0) {
    m.element("p", "None: no step was skipped, no value was non-finite.", {{"class", "soft"}});
    return;
  }
  {
    const auto list = m.in("ol", {{"class", "incidents"}});
    for (const Group& group : study.groups)
      for (const RunRecord* run : group.runs)
        for (const IncidentEvent& e : run->incidents) {
          if (shown == most_incidents) break;
          ++shown, --left_out;
          const auto item = m.in("li");
          {
            const auto step = m.in("span", {{"class", "number"}});
            write_step(m, study, *run, e, format("step {}", grouped(e.step)));
          }
          m.element("span", run->facts.name, {{"class", "name"}});
          m.element("span", kind_of(e), {{"class", "badge bad"}});
          if (!e.path.empty()) m.element("code", e.path);
          m.element("span", e.text, {{"class", "words"}});
        }
  }
  write_about_links(m, study);
  if (left_out > 0) m.element("p", format("and {} more, in the runs' metrics.jsonl", grouped(left_out)), {{"class", "soft"}});
}

void write_alerts(Markup& m, const Study& study) {
  std::int64_t all = 0, shown = 0;
  for (const Group& group : study.groups)
    for (const RunRecord* run : group.runs) all += std::int64_t(run->alerts.size()) + run->alerts_left_out;
  const auto section = m.in("section");
  m.element("h2", "Alerts");
  if (all == 0) return m.element("p", "None: no rule of docs/health.md fired.", {{"class", "soft"}});
  {
    const auto table = m.in("table", {{"class", "alerts"}});
    write_head(m, {"Step", "Run", "Severity", "Rule", "Tensor", "Observation", "Remedy"});
    const auto body = m.in("tbody");
    for (const Group& group : study.groups)
      for (const RunRecord* run : group.runs)
        for (const AlertEvent& e : run->alerts)
          if (shown < most_rows) write_row(m, study, *run, e), ++shown;
  }
  write_about_links(m, study);
  if (all > shown) m.element("p", format("and {} more, in the runs' metrics.jsonl", grouped(all - shown)), {{"class", "soft"}});
}

void write_recoveries(Markup& m, const Study& study) {
  std::int64_t all = 0, shown = 0;
  bool repeats = false;
  for (const Group& group : study.groups)
    for (const RunRecord* run : group.runs) {
      all += std::int64_t(run->recoveries.size()) + run->recoveries_left_out;
      for (const RecoveryEvent& e : run->recoveries) repeats |= repeats_steps(e);
    }
  if (all == 0) return;
  const auto section = m.in("section", {{"id", "recovery"}});
  m.element("h2", "Recovery");
  if (repeats)
    m.element("p", "A run that went back to a checkpoint has some steps twice. Curves and tables of this page have the later ones.",
              {{"class", "soft"}});
  {
    const auto list = m.in("ol", {{"class", "incidents"}});
    for (const Group& group : study.groups)
      for (const RunRecord* run : group.runs)
        for (const RecoveryEvent& e : run->recoveries)
          if (shown < most_rows) write_row(m, study, *run, e), ++shown;
  }
  if (all > shown) m.element("p", format("and {} more, in the runs' metrics.jsonl", grouped(all - shown)), {{"class", "soft"}});
}

}  // namespace octet::telemetry::report
