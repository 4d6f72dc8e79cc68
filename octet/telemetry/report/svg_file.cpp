#include "octet/telemetry/report/svg_file.hpp"

#include <sstream>

#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/stylesheet.hpp"
#include "octet/telemetry/report/svg.hpp"

namespace octet::telemetry::report {
namespace {

constexpr double width = 760, margin = 16, left = 74, row = 19, under = 40, gap = 6, bin_width = 92;  // pixels
constexpr std::size_t characters = 125;                                                               // of a note's line

// Between words.
std::vector<std::string> lines_of(const std::string& note) {
  std::vector<std::string> out(1);
  std::istringstream words(note);
  for (std::string word; words >> word; out.back() += (out.back().empty() ? "" : " ") + word)
    if (out.back().size() + word.size() >= characters) out.emplace_back();
  return out;
}

// The text above a chart: title, note, legend and unit, from y on.
class Head {
 public:
  Head(Markup& m, double y, const std::string& title, const std::string& note)
      : m_(m), y_(y + 26), group_(m.in("g", {{"class", "frame"}})) {
    write(margin, title, "name");
    for (const std::string& line : lines_of(note)) write(margin, line, "label");
  }
  void entry(const Line& line) {
    {
      const auto place = m_.in("svg", {{"x", coordinate(margin)}, {"y", coordinate(y_ - 9)}, {"width", "26"}, {"height", "10"}});
      m_.leaf("line", {{"class", "line " + series_class(line.style)}, {"x1", "0"}, {"x2", "26"}, {"y1", "5"}, {"y2", "5"}});
      if (!line.marks.empty()) chart_mark(m_, 0.5, 5, line.style);
    }
    write(margin + 34, line.name, "");
  }
  void entry(const BarPart& part) { area(part.name, "part " + part.classes, "12"); }
  void shade(const Line& band) { area(band.name, "shade", "26"); }
  // All bins in one row.
  void entries(const std::vector<HeatBin>& bins) {
    double x = margin;
    for (const HeatBin& bin : bins) {
      m_.leaf("rect",
              {{"class", "swatch " + bin.classes}, {"x", coordinate(x)}, {"y", coordinate(y_ - 10)}, {"width", "14"}, {"height", "12"}});
      m_.element("text", bin.label, {{"x", coordinate(x + 20)}, {"y", coordinate(y_)}, {"class", "label"}});
      x += bin_width;
    }
    y_ += row;
  }
  void unit(const std::string& text) { write(margin, text, "label"); }

 private:
  void area(const std::string& name, const std::string& classes, const char* pixels) {
    m_.leaf("rect", {{"class", classes}, {"x", coordinate(margin)}, {"y", coordinate(y_ - 10)}, {"width", pixels}, {"height", "12"}});
    write(margin + 34, name, "");
  }
  void write(double x, const std::string& text, const std::string& classes) {
    m_.element("text", text, {{"x", coordinate(x)}, {"y", coordinate(y_)}, {"class", classes}});
    y_ += row;
  }

  Markup& m_;
  double y_;
  Markup::Element group_;
};

double head_height(const std::string& note, std::size_t entries) { return 26 + double(lines_of(note).size() + entries + 2) * row; }
double head_height(const LineChart& c) { return head_height(c.note, c.lines.size() + (c.shade ? 1 : 0)); }
double head_height(const BarChart& c) { return head_height(c.note, legend_of(c).size()); }
double head_height(const HeatMap& c) { return head_height(c.note, 0); }
double height_of(const LineChart& c) { return head_height(c) + gap + c.height + under; }
double height_of(const BarChart& c) { return head_height(c) + gap + plot_height(c); }
double height_of(const HeatMap& c) { return head_height(c) + gap + plot_height(c); }

Markup::Element open_place(Markup& m, double x, double y, double height) {
  return m.in("svg", {{"x", coordinate(x)},
                      {"y", coordinate(y)},
                      {"width", coordinate(width - x - 2 * margin)},
                      {"height", coordinate(height)},
                      {"style", "overflow:visible"}});
}

void draw_at(Markup& m, const LineChart& chart, double y) {
  {
    Head head(m, y, chart.title, chart.note);
    for (const Line& line : chart.lines) head.entry(line);
    if (chart.shade) head.shade(*chart.shade);
    head.unit(chart.y_label);
  }
  const auto place = open_place(m, left, y + head_height(chart) - row + gap, chart.height + under);
  draw_plot(m, chart);
}

void draw_at(Markup& m, const BarChart& chart, double y) {
  const std::vector<BarPart> parts = legend_of(chart);
  {
    Head head(m, y, chart.title, chart.note);
    for (const BarPart& part : parts) head.entry(part);
    head.unit(chart.unit);
  }
  const auto place = open_place(m, margin, y + head_height(chart) - row + gap, plot_height(chart));
  draw_plot(m, chart);
}

void draw_at(Markup& m, const HeatMap& map, double y) {
  {
    Head head(m, y, map.title, map.note);
    head.entries(map.bins);
  }
  const auto place = open_place(m, margin + label_width(map.rows), y + head_height(map) - row + gap, plot_height(map));
  draw_plot(m, map);
}

}  // namespace

std::string svg_file(double width, double height, const std::function<void(Markup&)>& draw) {
  Markup m;
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
    draw(m);
  }
  return m.text() + "\n";
}

std::string svg_file(const std::vector<Chart>& charts) {
  double height = 0;
  for (const Chart& chart : charts) height += std::visit([](const auto& c) { return height_of(c); }, chart);
  return svg_file(width, height, [&](Markup& m) {
    double y = 0;
    for (const Chart& chart : charts) std::visit([&](const auto& c) { draw_at(m, c, y), y += height_of(c); }, chart);
  });
}

}  // namespace octet::telemetry::report
