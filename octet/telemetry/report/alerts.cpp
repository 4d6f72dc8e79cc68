#include "octet/base/text.hpp"
#include "octet/telemetry/report/sections.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::int64_t most_rows = 200;

void write_row(Markup& m, const RunRecord& run, const AlertEvent& e) {
  const auto row = m.in("tr");
  const auto cell = [&](const char* name, const std::string& text, const char* classes) {
    m.element("td", text, {{"data-label", name}, {"class", classes}});
  };
  cell("Step", grouped(e.step), "number");
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

}  // namespace

void write_alerts(Markup& m, const Study& study) {
  std::int64_t all = 0, shown = 0;
  for (const Group& group : study.groups)
    for (const RunRecord* run : group.runs) all += std::int64_t(run->alerts.size()) + run->alerts_left_out;
  const auto section = m.in("section");
  m.element("h2", "Alerts");
  if (all == 0) return m.element("p", "None: no rule of docs/health.md fired.", {{"class", "soft"}});
  {
    const auto table = m.in("table", {{"class", "alerts"}});
    {
      const auto head = m.in("thead");
      const auto row = m.in("tr");
      for (const char* column : {"Step", "Run", "Severity", "Rule", "Tensor", "Observation", "Remedy"})
        m.element("th", column, {{"scope", "col"}});
    }
    const auto body = m.in("tbody");
    for (const Group& group : study.groups)
      for (const RunRecord* run : group.runs)
        for (const AlertEvent& e : run->alerts)
          if (shown < most_rows) write_row(m, *run, e), ++shown;
  }
  if (all > shown) m.element("p", format("and {} more, in the runs' metrics.jsonl", grouped(all - shown)), {{"class", "soft"}});
}

}  // namespace octet::telemetry::report
