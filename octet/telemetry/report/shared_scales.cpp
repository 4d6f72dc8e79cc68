#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

using Values = std::vector<float> SharedScalesEvent::*;

bool has_shared_scales(const Group& g) { return !g.first().facts.ranks.shared_scales.empty() && !g.first().shared_scales.empty(); }

std::string share_text(float share) { return std::isfinite(share) ? format("{} %", tick_text(100 * double(share))) : "–"; }

// "0.25 in layers.0.mlp.down": the least or the largest of all measured steps.
template <class Text>
std::string extreme_text(const RunRecord& run, Values values, bool least, const Text& text) {
  float found = NAN;
  std::size_t at = 0;
  for (const SharedScalesEvent& e : run.shared_scales)
    for (std::size_t i = 0; i < (e.*values).size(); ++i) {
      const float x = (e.*values)[i];
      if (std::isfinite(x) && (!std::isfinite(found) || (least ? x < found : x > found))) found = x, at = i;
    }
  if (!std::isfinite(found)) return "–";
  return found == 0 && !least ? "none" : format("{} in {}", text(found), run.facts.ranks.shared_scales[at]);
}

void write_table(Markup& m, const Study& study) {
  write_groups(m, study, {"Run", "Gradients with a shared scale", "Least mu", "Most overflow", "Most underflow"},
               [](const Group& group) -> std::vector<std::string> {
                 if (!has_shared_scales(group)) return {};
                 const RunRecord& run = group.first();
                 return {format("{} tensors", run.facts.ranks.shared_scales.size()),
                         extreme_text(run, &SharedScalesEvent::mu, true, [](float mu) { return tick_text(mu); }),
                         extreme_text(run, &SharedScalesEvent::overflow, false, share_text),
                         extreme_text(run, &SharedScalesEvent::underflow, false, share_text)};
               });
}

// The median over tensors, and a band from the least to the largest.
Line line_of(const Group& group, Values values, double factor) {
  Line line{.name = group.name, .style = group.style};
  for (const SharedScalesEvent& e : group.first().shared_scales) {
    std::vector<double> of_tensors;
    for (const float x : e.*values)
      if (std::isfinite(x)) of_tensors.push_back(factor * double(x));
    if (of_tensors.empty()) continue;
    const auto [low, high] = std::minmax_element(of_tensors.begin(), of_tensors.end());
    const double x = double(e.step);
    line.low.push_back({x, *low}), line.high.push_back({x, *high});
    line.points.push_back({x, quantile(of_tensors, 0.5)});
  }
  return line;
}

void draw_values(Markup& m, const Study& study, LineChart chart, Values values, double factor) {
  double last = 1, most = 0;
  for (const Group& group : study.groups) {
    if (!has_shared_scales(group)) continue;
    Line line = line_of(group, values, factor);
    for (const Point& p : line.high) last = std::max(last, p.x), most = std::max(most, p.y);
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) return;
  chart.note += "Line: median over tensors. Band: least to largest.";
  chart.x_label = "step", chart.height = 200, chart.legend = study.groups.size() > 1;
  chart.x = {.low = 0, .high = last}, chart.y = linear_axis(0, most > 0 ? most : 1);
  draw(m, chart);
}

}  // namespace

void write_shared_scales(Markup& m, const Study& study) {
  if (std::none_of(study.groups.begin(), study.groups.end(), has_shared_scales)) return;
  m.element("h3", "Gradients that travel with one shared scale per tensor");
  write_table(m, study);
  const auto grid = m.in("div", {{"class", "grid thirds"}});
  draw_values(m, study,
              {.title = "Factor mu", .note = "It leaves room for sums; it is halved where too many of them saturate. ", .y_label = "mu"},
              &SharedScalesEvent::mu, 1);
  draw_values(m, study, {.title = "Overflow", .note = "Sums that have the largest code. ", .y_label = "share of the sums", .unit = " %"},
              &SharedScalesEvent::overflow, 100);
  draw_values(
      m, study,
      {.title = "Underflow", .note = "Values that were sent as 0 although they are not. ", .y_label = "share of the values", .unit = " %"},
      &SharedScalesEvent::underflow, 100);
}

}  // namespace octet::telemetry::report
