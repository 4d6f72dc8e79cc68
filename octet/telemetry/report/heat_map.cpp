#include "octet/telemetry/report/heat_map.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/axis.hpp"
#include "octet/telemetry/report/svg.hpp"

namespace octet::telemetry::report {
namespace {

constexpr double most_height = 620, tallest_row = 14, flattest_row = 2, label_gap = 11, below = 34;
constexpr std::size_t longest_label = 30;

struct Label {
  double y;  // of its middle
  std::string text;
};

double row_height(std::size_t rows) {
  return std::clamp(std::floor(most_height / double(std::max<std::size_t>(rows, 1))), flattest_row, tallest_row);
}

/// Shortens the middle; both ends distinguish rows.
std::string shortened(const std::string& s) {
  if (s.size() <= longest_label) return s;
  const std::size_t half = longest_label / 2;
  return format("{}…{}", s.substr(0, half - 1), s.substr(s.size() - half));
}

/// One label per run of rows that share a name on a level.
template <class Name>
std::vector<Label> labels_by(std::span<const HeatRow> rows, double height, Name name) {
  std::vector<Label> out;
  for (std::size_t i = 0, next; i < rows.size(); i = next) {
    next = i + 1;
    while (next < rows.size() && name(rows[next]) == name(rows[i])) ++next;
    out.push_back({height * double(i + next) / 2, shortened(name(rows[i]))});
  }
  return out;
}

/// Labels on the finest level on which they do not touch: rows, sites, groups.
std::vector<Label> labels_of(std::span<const HeatRow> rows) {
  const double height = row_height(rows.size());
  const auto fits = [](const std::vector<Label>& labels) {
    for (std::size_t i = 1; i < labels.size(); ++i)
      if (labels[i].y - labels[i - 1].y < label_gap - 0.01) return false;
    return true;
  };
  auto labels = labels_by(rows, height, [](const HeatRow& r) -> const std::string& { return r.name; });
  if (!fits(labels)) labels = labels_by(rows, height, [](const HeatRow& r) -> const std::string& { return r.site; });
  if (!fits(labels)) labels = labels_by(rows, height, [](const HeatRow& r) -> const std::string& { return r.group; });
  std::vector<Label> out;
  for (auto& label : labels)
    if (out.empty() || label.y - out.back().y >= label_gap - 0.01) out.push_back(std::move(label));
  return out;
}

constexpr int empty_cell = -1, alarm_cell = -2;

int bin_of(const HeatMap& map, std::size_t cell) {
  if (!map.alarms.empty() && map.alarms[cell]) return alarm_cell;
  if (std::isnan(map.values[cell])) return empty_cell;
  for (std::size_t i = 0; i < map.bins.size(); ++i)
    if (map.values[cell] < map.bins[i].below) return int(i);
  return int(map.bins.size()) - 1;
}

/// One path per class: a stroke as thick as a row for each run of its cells.
void draw_cells(Markup& m, const HeatMap& map, double height) {
  std::vector<std::string> paths(map.bins.size() + 1);  // the last of alarms
  for (std::size_t row = 0; row < map.rows.size(); ++row)
    for (std::size_t column = 0, next; column < map.columns; column = next) {
      const int bin = bin_of(map, row * map.columns + column);
      next = column + 1;
      while (next < map.columns && bin_of(map, row * map.columns + next) == bin) ++next;
      if (bin == empty_cell) continue;
      std::string& path = paths[bin == alarm_cell ? map.bins.size() : std::size_t(bin)];
      path += format("M{} {}h{}", column, row, next - column);
    }
  const auto cells = m.in("svg", {{"width", "100%"},
                                  {"height", coordinate(height * double(map.rows.size()))},
                                  {"viewBox", format("0 -.5 {} {}", map.columns, map.rows.size())},
                                  {"preserveAspectRatio", "none"},
                                  {"class", "cells"}});
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty()) m.leaf("path", {{"class", i < map.bins.size() ? map.bins[i].classes : "alarm"}, {"d", paths[i]}});
}

void draw_rows(Markup& m, const HeatMap& map, double height) {
  {
    const auto labels = m.in("g", {{"class", "rows"}});
    for (const Label& label : labels_of(map.rows))
      m.element("text", label.text, {{"x", "-6"}, {"y", coordinate(label.y + 3.5)}, {"text-anchor", "end"}});
  }
  for (std::size_t i = 1; i < map.rows.size(); ++i)
    if (map.rows[i].group != map.rows[i - 1].group)
      m.leaf("line", {{"class", height < 5 ? "part-line thin" : "part-line"},
                      {"x1", "-4"},
                      {"x2", "100%"},
                      {"y1", coordinate(height * double(i))},
                      {"y2", coordinate(height * double(i))}});
}

/// The tooltip of a row: its name and its range of values.
void draw_hints(Markup& m, const HeatMap& map, double height) {
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    double low = NAN, high = NAN;
    for (std::size_t i = row * map.columns; i < (row + 1) * map.columns; ++i)
      low = std::fmin(low, map.values[i]), high = std::fmax(high, map.values[i]);
    const auto rect =
        m.in("rect", {{"class", "hint"}, {"width", "100%"}, {"y", coordinate(height * double(row))}, {"height", coordinate(height)}});
    m.element("title", map.rows[row].name + (std::isnan(low) ? "" : ": " + tick_text(low) + " to " + tick_text(high)));
  }
}

void draw_steps(Markup& m, const HeatMap& map, double bottom) {
  // Column i covers [i, i + 1] / columns; its x is at the middle.
  const double n = double(map.columns), span = map.last - map.first;
  const Axis axis{.low = map.first, .high = map.last};
  for (const double tick : axis.ticks(4)) {  // of one column, its own step
    const double x = span > 0 ? (0.5 + (tick - map.first) / span * (n - 1)) / n : 0.5;
    if (x < 0 || x > 1 || tick != std::round(tick)) continue;
    m.leaf("line", {{"class", "axis"}, {"x1", percent(x)}, {"x2", percent(x)}, {"y1", coordinate(bottom)}, {"y2", coordinate(bottom + 4)}});
    chart_text(m, x, bottom + 16, tick_text(tick), "tick", "middle");
  }
  chart_text(m, 1, bottom + 31, map.x_label, "label", "end");
}

void draw_legend(Markup& m, const HeatMap& map) {
  const auto legend = m.in("ul", {{"class", "legend scale"}});
  const auto entry = [&](const std::string& classes, const std::string& label) {
    const auto item = m.in("li");
    {
      const auto swatch =
          m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"}, {"width", "14"}, {"height", "12"}, {"aria-hidden", "true"}});
      m.leaf("rect", {{"class", "swatch " + classes}, {"width", "14"}, {"height", "12"}});
    }
    m.text(label);
  };
  for (const HeatBin& bin : map.bins) entry(bin.classes, bin.label);
  if (std::find(map.alarms.begin(), map.alarms.end(), 1) != map.alarms.end()) entry("alarm", "non-finite");
}

bool all_zero(const HeatMap& map) {
  return std::none_of(map.values.begin(), map.values.end(), [](float x) { return x != 0 && !std::isnan(x); }) &&
         std::none_of(map.alarms.begin(), map.alarms.end(), [](unsigned char alarm) { return alarm != 0; });
}

}  // namespace

double label_width(std::span<const HeatRow> rows) {
  std::size_t longest = 0;
  for (const Label& label : labels_of(rows)) longest = std::max(longest, label.text.size());
  return 12 + 5.0 * double(longest);  // 10 px of a condensed face: under 5 px per character
}

void draw(Markup& m, const HeatMap& map) {
  const auto figure = m.in("figure", {{"class", "chart"}});
  const bool nothing = !map.nothing.empty() && all_zero(map);
  {
    const auto caption = m.in("figcaption");
    m.element("h4", map.title);
    m.element("p", map.note);
    if (nothing) m.element("p", map.nothing, {{"class", "nothing"}});
    if (!nothing) draw_legend(m, map);
  }
  if (nothing) return;
  const auto area = m.in("div", {{"class", "area map"}});
  draw_plot(m, map);
}

double plot_height(const HeatMap& map) { return row_height(map.rows.size()) * double(map.rows.size()) + below; }

void draw_plot(Markup& m, const HeatMap& map) {
  const double height = row_height(map.rows.size()), bottom = height * double(map.rows.size());
  const auto svg = open_chart(m, bottom + below, map.title, map.note + " One row per quantizer, one column per interval of steps.");
  draw_cells(m, map, height);
  draw_rows(m, map, height);
  draw_hints(m, map, height);
  draw_steps(m, map, bottom);
}

}  // namespace octet::telemetry::report
