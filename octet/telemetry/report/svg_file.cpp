#include "octet/telemetry/report/svg_file.hpp"

#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/stylesheet.hpp"
#include "octet/telemetry/report/svg.hpp"

namespace octet::telemetry::report {
namespace {

constexpr double width = 760, margin = 16, left = 74, row = 19, under = 40;  // pixels

void draw_entry(Markup& m, const Line& line, double y) {
  const auto place = m.in("svg", {{"x", coordinate(margin)}, {"y", coordinate(y - 9)}, {"width", "26"}, {"height", "10"}});
  m.leaf("line", {{"class", "line " + series_class(line.style)}, {"x1", "0"}, {"x2", "26"}, {"y1", "5"}, {"y2", "5"}});
  if (!line.marks.empty()) chart_mark(m, 0.5, 5, line.style);
}

void draw_text(Markup& m, double x, double y, const std::string& text, const std::string& classes) {
  m.element("text", text, {{"x", coordinate(x)}, {"y", coordinate(y)}, {"class", classes}});
}

// Leaves `y` at the last line of text.
void draw_head(Markup& m, const LineChart& chart, double& y) {
  const auto head = m.in("g", {{"class", "frame"}});
  draw_text(m, margin, 26, chart.title, "name");
  draw_text(m, margin, 26 + row, chart.note, "label");
  for (const Line& line : chart.lines) {
    draw_entry(m, line, y);
    draw_text(m, margin + 34, y, line.name, "");
    y += row;
  }
  draw_text(m, margin, y, chart.y_label, "label");
}

}  // namespace

std::string svg_file(const LineChart& chart) {
  Markup m;
  double y = 26 + 2 * row + 4;
  const double height = y + double(chart.lines.size()) * row + row + chart.height + under;
  {
    const auto file = m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                                   {"width", coordinate(width)},
                                   {"height", coordinate(height)},
                                   {"font-family", "system-ui,-apple-system,Segoe UI,Roboto,Liberation Sans,Arial,sans-serif"}});
    {
      const auto style = m.in("style");
      m.verbatim(stylesheet);
    }
    m.leaf("rect", {{"width", "100%"}, {"height", "100%"}, {"style", "fill:var(--bg)"}});
    draw_head(m, chart, y);
    const auto plot = m.in("svg", {{"x", coordinate(left)},
                                   {"y", coordinate(y + 12)},
                                   {"width", coordinate(width - left - 2 * margin)},
                                   {"height", coordinate(chart.height + under)},
                                   {"style", "overflow:visible"}});
    draw_plot(m, chart);
  }
  return m.text() + "\n";
}

}  // namespace octet::telemetry::report
