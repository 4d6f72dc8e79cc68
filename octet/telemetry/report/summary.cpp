#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/svg.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::report {
namespace {

/// A cell that says its column's name again, for the narrow layout in which every row is a block of its own.
void cell(Markup& m, const std::string& name, const std::string& value, const std::string& classes = "number") {
  m.element("td", value, {{"data-label", name}, {"class", classes}});
}

void name_cell(Markup& m, const Group& group) {
  const auto head = m.in("th", {{"scope", "row"}});
  {
    const auto swatch = m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"width", "14"}, {"height", "10"}, {"aria-hidden", "true"}});
    chart_mark(m, 0.5, 5, group.style);
  }
  m.text(group.name);
}

void gap_cell(Markup& m, const std::string& name, const ComparisonRow& row, bool baseline) {
  const auto td = m.in("td", {{"data-label", name}, {"class", "number gap"}});
  if (baseline) {
    m.element("span", "baseline", {{"class", "soft"}});
    return;
  }
  m.text(row.state == RunState::diverged ? "diverged" : signed_percent(row.gap));
  if (std::isfinite(row.gap_spread)) m.element("span", " ± " + fixed(100 * row.gap_spread, 2), {{"class", "soft"}});
  m.element("span", row.within ? "within" : "beyond", {{"class", row.within ? "badge good" : "badge bad"}});
}

void head_row(Markup& m, std::initializer_list<std::string> names) {
  const auto head = m.in("thead");
  const auto row = m.in("tr");
  for (const auto& name : names) m.element("th", name, {{"scope", "col"}});
}

void write_compared(Markup& m, const Study& study) {
  const Comparison& c = *study.comparison;
  const std::string gap = "Gap to " + c.baseline, ratio = "× " + c.baseline;
  head_row(m, {"Recipe", "Train loss", "Eval loss", gap, "Gradient cosine", "Tokens/s", ratio, "Peak memory", "Skipped"});
  const auto body = m.in("tbody");
  for (const Group& group : study.groups) {
    const ComparisonRow* row = find_row(c, group.name);
    if (!row) continue;
    const auto tr = m.in("tr");
    name_cell(m, group);
    cell(m, "Train loss", number_text(row->train_loss, 4));
    cell(m, "Eval loss", number_text(row->eval_loss, 4));
    gap_cell(m, gap, *row, group.name == c.baseline);
    cell(m, "Gradient cosine", number_text(row->gradient_cosine, 5));
    cell(m, "Tokens/s", whole_text(row->tokens_per_second));
    cell(m, ratio, number_text(row->speed_ratio, 2));
    cell(m, "Peak memory", bytes_text(double(row->memory.peak)));
    cell(m, "Skipped", std::to_string(row->skipped));
  }
}

/// "120 of 500", or "120" where the number is not known before the end.
std::string steps_text(const RunRecord& run) {
  const std::string done = run.steps.empty() ? "0" : grouped(run.steps.back().step);
  return run.facts.steps > 0 ? format("{} of {}", done, grouped(run.facts.steps)) : done;
}

void write_single(Markup& m, const Study& study) {
  head_row(m, {"Run", "Recipe", "State", "Steps", "Train loss", "Eval loss", "Tokens/s", "Peak memory", "Skipped"});
  const auto body = m.in("tbody");
  for (const Group& group : study.groups) {
    const RunRecord& run = group.first();
    const auto tr = m.in("tr");
    name_cell(m, group);
    cell(m, "Recipe", run.facts.recipe);
    cell(m, "State", run.facts.state == RunState::running ? "unfinished" : to_text(run.facts.state));
    cell(m, "Steps", steps_text(run));
    cell(m, "Train loss", number_text(final_train_loss(run), 4));
    cell(m, "Eval loss", number_text(final_eval_loss(run), 4));
    cell(m, "Tokens/s", whole_text(median_tokens_per_second(run)));
    cell(m, "Peak memory", bytes_text(double(run.facts.memory.peak)));
    cell(m, "Skipped", std::to_string(skipped_steps(run)));
  }
}

}  // namespace

void write_summary(Markup& m, const Study& study) {
  if (study.groups.empty()) return;
  const auto section = m.in("section");
  m.element("h2", "Summary");
  {
    const auto table = m.in("table", {{"class", "summary"}});
    study.comparison ? write_compared(m, study) : write_single(m, study);
  }
  if (study.comparison)
    m.element("p",
              "Losses in nats per token, means over seeds. The gap is that of the evaluation loss to the baseline's of the same seed, ± "
              "half its range "
              "over seeds. The cosine is that of the first step's gradient with the baseline's. Tokens/s is the median over steps.",
              {{"class", "soft"}});
}

}  // namespace octet::report
