#include "octet/telemetry/report/bar_chart.hpp"

#include <algorithm>
#include <cmath>

#include "octet/telemetry/report/svg.hpp"

namespace octet::telemetry::report {
namespace {

constexpr double row = 42, thickness = 13;

double length_of(const Bar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts)
    if (std::isfinite(part.value)) sum += std::max(part.value, 0.0);
  return sum;
}

void draw_bar(Markup& m, const Bar& bar, double top, double longest) {
  chart_text(m, 0, top + 12, bar.name, "name");
  chart_text(m, 1, top + 12, bar.value_text, "value", "end");
  m.leaf("rect", {{"class", "rail"}, {"x", "0"}, {"width", "100%"}, {"y", coordinate(top + 18)}, {"height", coordinate(thickness)}});
  double from = 0;
  for (const BarPart& part : bar.parts) {
    if (!(part.value > 0) || !std::isfinite(part.value)) continue;
    const auto rect = m.in("rect", {{"class", "part " + part.classes},
                                    {"x", percent(from / longest)},
                                    {"width", percent(part.value / longest)},
                                    {"y", coordinate(top + 18)},
                                    {"height", coordinate(thickness)}});
    m.element("title", part.name);
    from += part.value;
  }
}

void draw_legend(Markup& m, const BarChart& chart) {
  const auto legend = m.in("ul", {{"class", "legend"}});
  for (const BarPart& part : legend_of(chart)) {
    const auto item = m.in("li");
    {
      const auto swatch =
          m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"width", "12"}, {"height", "12"}, {"aria-hidden", "true"}});
      m.leaf("rect", {{"class", "part " + part.classes}, {"width", "12"}, {"height", "12"}});
    }
    m.text(part.name);
  }
}

}  // namespace

std::vector<BarPart> legend_of(const BarChart& chart) {
  std::vector<BarPart> out;
  for (const Bar& bar : chart.bars)
    for (const BarPart& part : bar.parts)
      if (part.value > 0 && std::none_of(out.begin(), out.end(), [&](const BarPart& p) { return p.classes == part.classes; }))
        out.push_back(part);
  return out;
}

double plot_height(const BarChart& chart) { return std::max<double>(1, double(chart.bars.size())) * row; }

void draw_plot(Markup& m, const BarChart& chart) {
  double longest = 0;
  std::string description = chart.note;
  for (const Bar& bar : chart.bars) {
    longest = std::max(longest, length_of(bar));
    description += " " + bar.name + ": " + bar.value_text + ".";
  }
  const auto svg = open_chart(m, plot_height(chart), chart.title, description);
  for (std::size_t i = 0; i < chart.bars.size(); ++i) draw_bar(m, chart.bars[i], double(i) * row, longest > 0 ? longest : 1);
}

void draw(Markup& m, const BarChart& chart) {
  const auto figure = m.in("figure", {{"class", "chart bars"}});
  {
    const auto caption = m.in("figcaption");
    m.element("h3", chart.title);
    if (!chart.note.empty()) m.element("p", chart.note);
    if (chart.legend) draw_legend(m, chart);
    m.element("p", chart.unit, {{"class", "unit"}});
  }
  const auto area = m.in("div", {{"class", "area flush"}});
  draw_plot(m, chart);
}

}  // namespace octet::telemetry::report
