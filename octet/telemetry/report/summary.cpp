#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/svg.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

/// A cell with its column's name, for the narrow layout in which every row is a block.
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

std::string badge_of(const ComparisonRow& row) {
  if (row.twin > 0) return "badge open";
  switch (row.verdict) {
    case Verdict::within: return "badge good";
    case Verdict::over:
    case Verdict::diverged: return "badge bad";
    case Verdict::baseline:
    case Verdict::not_resolved: break;
  }
  return "badge open";
}

void gap_cell(Markup& m, const std::string& name, const ComparisonRow& row, const Comparison& c) {
  const auto td = m.in("td", {{"data-label", name}, {"class", "number gap"}});
  if (row.arm == c.baseline && row.twin == 0) {
    m.element("span", "baseline", {{"class", "soft"}});
    return;
  }
  m.text(signed_percent(row.gap));
  if (std::isfinite(row.gap_half_width)) m.element("span", " ± " + fixed(100 * row.gap_half_width, 2), {{"class", "soft"}});
  m.element("span", row.twin > 0 ? verdict_text(row) : to_text(row.verdict), {{"class", badge_of(row)}});
  if (const std::string few = few_eight_bits(row.eight_bit_share); !few.empty()) m.element("span", " " + few, {{"class", "soft"}});
}

void write_compared(Markup& m, const Study& study) {
  const Comparison& c = *study.comparison;
  const std::string gap = "Gap to " + c.baseline, ratio = "× " + c.baseline;
  const bool average = std::any_of(c.rows.begin(), c.rows.end(), [](const ComparisonRow& r) { return std::isfinite(r.average_loss); });
  std::vector<std::string> names{"Arm", "Train loss", "Eval loss", gap, "Gradient cosine", "Tokens/s", ratio, "Peak memory", "Skipped"};
  if (average) names.insert(names.begin() + 3, "Averaged");
  write_head(m, names);
  const auto body = m.in("tbody");
  const auto write = [&](const Group& group, bool twin) {
    const ComparisonRow* row = find_row(c, group.name);
    if (!row) return;
    const auto tr = m.in("tr");
    if (twin) m.element("th", group.name, {{"scope", "row"}, {"class", "soft"}});
    else name_cell(m, group);
    cell(m, "Train loss", number_text(row->train_loss, 4));
    cell(m, "Eval loss", number_text(row->eval_loss, 4));
    if (average) cell(m, "Averaged", number_text(row->average_loss, 4));
    gap_cell(m, gap, *row, c);
    cell(m, "Gradient cosine", number_text(row->gradient_cosine, 5));
    cell(m, "Tokens/s", whole_text(row->tokens_per_second));
    cell(m, ratio, number_text(row->speed_ratio, 2));
    cell(m, "Peak memory", bytes_text(double(row->memory.peak)));
    cell(m, "Skipped", std::to_string(row->skipped));
  };
  for (std::size_t i = 0; i < study.groups.size(); ++i) {
    write(study.groups[i], false);
    if (i > 0) continue;
    for (const Group& twin : study.twins) write(twin, true);
  }
}

/// "120 of 500", or "120" where the number is not known before the end.
std::string steps_text(const RunRecord& run) {
  const std::string done = run.steps.empty() ? "0" : grouped(run.steps.back().step);
  return run.facts.steps > 0 ? format("{} of {}", done, grouped(run.facts.steps)) : done;
}

void write_single(Markup& m, const Study& study) {
  write_head(m, {"Run", "Recipe", "State", "Steps", "Train loss", "Eval loss", "Tokens/s", "Peak memory", "Skipped"});
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
    m.element(
        "p",
        format("Losses in nats per token, means over seeds; \"averaged\": of the mean of the last weights. The gap is that of the last of "
               "these losses to the baseline's of the same seed; ± is its interval at {}%, Student's t over the seeds, with at least the "
               "twins' deviation, corrected for several arms (Holm). Within or over: the whole interval is below or above {}%. The cosine "
               "is that of the first step's "
               "gradient with the baseline's. Tokens/s is the median over steps.",
               fixed(100 * study.comparison->confidence, 0), fixed(100 * study.comparison->tolerance, 2)),
        {{"class", "soft"}});
}

}  // namespace octet::telemetry::report
