#include "octet/base/text.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"

namespace octet::telemetry::report {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const auto n : shape) out += (out.empty() ? "" : " × ") + grouped(n);
  return out;
}

/// Groups whose plans differ only in precision are still shown in full, as they are stored.
void write_plan_table(Markup& m, const RunFacts& run) {
  const auto table = m.in("table", {{"class", "plan"}});
  write_head(m, {"Layer", "Shape", "Precision", "Why"});
  const auto body = m.in("tbody");
  for (const PlanEntry& entry : run.plan) {
    const auto row = m.in("tr");
    const auto cell = [&](const char* name, const std::string& text, const char* classes) {
      m.element("td", text, {{"data-label", name}, {"class", classes}});
    };
    cell("Layer", entry.path, "code");
    cell("Shape", shape_text(entry.shape), "number");
    cell("Precision", entry.precision, "");
    cell("Why", entry.why, "");
  }
}

}  // namespace

void write_plan(Markup& m, const Study& study) {
  if (study.groups.empty()) return;
  const auto section = m.in("section");
  m.element("h2", "Plan: layer, precision, reason");
  for (const Group& group : study.groups) {
    const auto details = m.in("details");
    {
      const auto summary = m.in("summary");
      m.element("span", group.name, {{"class", "name"}});
      m.element("span", format("{} entries", group.first().facts.plan.size()), {{"class", "soft"}});
    }
    write_plan_table(m, group.first().facts);
  }
}

}  // namespace octet::telemetry::report
