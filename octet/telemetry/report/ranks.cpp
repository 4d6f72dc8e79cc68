#include <algorithm>
#include <cmath>
#include <map>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

bool has_ranks(const Group& g) { return g.first().facts.ranks.started > 1; }

double median_exposed(const RunRecord& run) {
  std::vector<double> shares;
  for (const RanksEvent& e : run.ranks)
    if (const double share = exposed_share(e); std::isfinite(share)) shares.push_back(share);
  return quantile(shares, 0.5);
}

// "rank 2 in 9 of 10 steps".
std::string slowest_text(const RunRecord& run) {
  std::map<std::int64_t, std::size_t> times;
  for (const RanksEvent& e : run.ranks) ++times[e.slowest];
  if (times.empty()) return "–";
  const auto most = std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return format("rank {} in {} of {} steps", most->first, most->second, run.ranks.size());
}

std::string planned_and_real(const RanksFacts& r, const std::string& planned, const std::string& real) {
  return format("{}; {}", planned, r.ran ? real : "–");
}

std::string share_text(const StepWork& w) { return number_text(100 * w.fp8_flops / w.gemm_flops, 1) + " %"; }

void write_table(Markup& m, const Study& study) {
  write_groups(m, study,
               {"Run", "Ranks", "Gradients travel as", "Sent per rank and step: planned; real", "GEMM work in 8 bits: planned; real",
                "In collectives", "Slowest"},
               [](const Group& group) -> std::vector<std::string> {
                 if (!has_ranks(group)) return {};
                 const RunRecord& run = group.first();
                 const RanksFacts& r = run.facts.ranks;
                 const StepWork real = r.ran.value_or(StepWork{});
                 const double exposed = median_exposed(run);
                 return {format("{}{}{}", r.started, r.backend.empty() ? "" : " over ", r.backend),
                         r.gradients,
                         planned_and_real(r, bytes_text(double(r.planned.sent_bytes)), bytes_text(double(real.sent_bytes))),
                         planned_and_real(r, share_text(r.planned), share_text(real)),
                         std::isfinite(exposed) ? number_text(100 * exposed, 1) + " %" : "–",
                         slowest_text(run)};
               });
}

void draw_exposed(Markup& m, const Study& study) {
  LineChart chart{.title = "Time in collectives",
                  .note = "Mean over ranks of the share of a step, in the steps that measure. A rank also waits there for slower ones.",
                  .x_label = "step",
                  .y_label = "share of the step",
                  .unit = " %",
                  .height = 200,
                  .legend = study.groups.size() > 1};
  double last = 1, most = 0;
  for (const Group& group : study.groups) {
    Line line{.name = group.name, .style = group.style};
    for (const RanksEvent& e : group.first().ranks) {
      const double share = 100 * exposed_share(e);
      if (!std::isfinite(share)) continue;
      line.points.push_back({double(e.step), share});
      last = std::max(last, double(e.step)), most = std::max(most, share);
    }
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) return;
  chart.x = {.low = 0, .high = last}, chart.y = linear_axis(0, std::clamp(most, 1.0, 100.0));
  draw(m, chart);
}

}  // namespace

void write_ranks(Markup& m, const Study& study) {
  if (std::none_of(study.groups.begin(), study.groups.end(), has_ranks)) return;
  const auto section = m.in("section");
  m.element("h2", "Ranks");
  write_table(m, study);
  {
    const auto grid = m.in("div", {{"class", "grid"}});
    draw_exposed(m, study);
  }
  write_shared_scales(m, study);
}

}  // namespace octet::telemetry::report
