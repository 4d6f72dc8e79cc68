#include "octet/telemetry/report/line_chart.hpp"

#include <algorithm>
#include <cmath>

#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/svg.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::size_t most_points = 600;
constexpr double below = 34;  // pixels under the plot, for the x axis

Points placed(const LineChart& chart, const Points& points) {
  Points out;
  for (const Point& p : points) out.push_back({chart.x.place(p.x), chart.y.place(p.y)});
  return out;
}

std::string description(const LineChart& chart) {
  std::string out = chart.note + " Horizontally: " + chart.x_label + ". Vertically: " + chart.y_label + ".";
  for (const Line& line : chart.lines) {
    const Points& values = line.points.empty() ? line.marks : line.points;
    if (values.empty()) continue;
    out += " " + line.name + " changes from " + coordinate(values.front().y, 4) + chart.unit + " to " + coordinate(values.back().y, 4) +
           chart.unit + ".";
  }
  return out;
}

void draw_axes(Markup& m, const LineChart& chart) {
  const double height = chart.height;
  for (const double tick : chart.y.ticks(5)) {
    const double y = (1 - chart.y.place(tick)) * height;
    if (y < -0.5 || y > height + 0.5) continue;
    m.leaf("line", {{"class", "grid"}, {"x1", "0"}, {"x2", "100%"}, {"y1", coordinate(y)}, {"y2", coordinate(y)}});
    m.element("text", tick_text(tick) + chart.unit, {{"x", "-6"}, {"y", coordinate(y + 3.5)}, {"class", "tick"}, {"text-anchor", "end"}});
  }
  m.leaf("line", {{"class", "axis"}, {"x1", "0"}, {"x2", "100%"}, {"y1", coordinate(height)}, {"y2", coordinate(height)}});
  for (const double tick : chart.x_ticks.empty() ? chart.x.ticks(5) : chart.x_ticks) {
    const double x = chart.x.place(tick);
    if (x < -0.001 || x > 1.001) continue;
    m.leaf("line", {{"class", "axis"}, {"x1", percent(x)}, {"x2", percent(x)}, {"y1", coordinate(height)}, {"y2", coordinate(height + 4)}});
    chart_text(m, x, height + 16, tick_text(tick), "tick", "middle");
  }
  chart_text(m, 1, height + 31, chart.x_label, "label", "end");
}

void draw_lines(Markup& m, const LineChart& chart) {
  const double height = chart.height;
  const auto plot = open_plot(m, height);
  if (chart.zone) {
    const double top = (1 - chart.y.place(*chart.zone)) * height, bottom = (1 - chart.y.place(-*chart.zone)) * height;
    m.leaf(
        "rect",
        {{"class", "zone"}, {"x", "0"}, {"width", coordinate(plot_units)}, {"y", coordinate(top)}, {"height", coordinate(bottom - top)}});
  }
  if (chart.shade && chart.shade->low.size() > 1)
    m.leaf("path", {{"class", "shade"},
                    {"d", band_path(placed(chart, thinned(chart.shade->low, most_points / 2)),
                                    placed(chart, thinned(chart.shade->high, most_points / 2)), height)}});
  for (const Line& line : chart.lines)
    if (line.low.size() > 1)
      m.leaf("path", {{"class", "band " + series_class(line.style)},
                      {"d", band_path(placed(chart, thinned(line.low, most_points / 2)), placed(chart, thinned(line.high, most_points / 2)),
                                      height)}});
  for (auto line = chart.lines.rbegin(); line != chart.lines.rend(); ++line)
    if (line->points.size() > 1)
      m.leaf("path",
             {{"class", "line " + series_class(line->style)}, {"d", line_path(placed(chart, thinned(line->points, most_points)), height)}});
}

// A line of one point is a mark.
void draw_marks(Markup& m, const LineChart& chart) {
  const auto draw_all = [&](const Line& line, const Points& points) {
    for (const Point& p : placed(chart, points))
      if (std::isfinite(p.y) && p.y >= 0 && p.y <= 1) chart_mark(m, p.x, (1 - p.y) * chart.height, line.style);
  };
  for (const Line& line : chart.lines) {
    if (line.points.size() == 1) draw_all(line, line.points);
    draw_all(line, thinned(line.marks, 60));
  }
}

}  // namespace

void legend_entry(Markup& m, const std::string& name, int style, bool mark) {
  const auto item = m.in("li");
  {
    const auto swatch = m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"width", "26"}, {"height", "10"}, {"aria-hidden", "true"}});
    m.leaf("line", {{"class", "line " + series_class(style)}, {"x1", "0"}, {"x2", "26"}, {"y1", "5"}, {"y2", "5"}});
    if (mark) chart_mark(m, 0.5, 5, style);
  }
  m.text(name);
}

static void shade_entry(Markup& m, const std::string& name) {
  const auto item = m.in("li");
  {
    const auto swatch = m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"width", "26"}, {"height", "10"}, {"aria-hidden", "true"}});
    m.leaf("rect", {{"class", "shade"}, {"width", "26"}, {"height", "10"}});
  }
  m.text(name);
}

void draw(Markup& m, const LineChart& chart) {
  const auto figure = m.in("figure", {{"class", "chart"}});
  {
    const auto caption = m.in("figcaption");
    m.element("h3", chart.title);
    if (!chart.note.empty()) m.element("p", chart.note);
    if (chart.legend) {
      const auto legend = m.in("ul", {{"class", "legend"}});
      for (const Line& line : chart.lines) legend_entry(m, line.name, line.style, !line.marks.empty());
      if (chart.shade) shade_entry(m, chart.shade->name);
    }
    m.element("p", chart.y_label, {{"class", "unit"}});
  }
  const auto area = m.in("div", {{"class", "area"}});
  draw_plot(m, chart);
}

void draw_plot(Markup& m, const LineChart& chart) {
  const auto svg = open_chart(m, chart.height + below, chart.title, description(chart));
  draw_axes(m, chart);
  draw_lines(m, chart);
  draw_marks(m, chart);
}

}  // namespace octet::telemetry::report
