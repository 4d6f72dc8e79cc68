#pragma once

#include <optional>
#include <string>
#include <vector>

#include "octet/telemetry/report/axis.hpp"
#include "octet/telemetry/report/markup.hpp"
#include "octet/telemetry/report/series.hpp"

namespace octet::telemetry::report {

struct Line {
  std::string name;
  int style = 0;
  Points points;
  Points low{}, high{};  // a band around the line, at the same x
  Points marks{};        // single values
};

struct LineChart {
  std::string title;
  std::string note;  // explanation under the title
  std::string x_label, y_label;
  std::string unit{};  // after every number of the y axis, such as " %"
  Axis x{}, y{};
  std::vector<double> x_ticks{};  // empty: round values
  std::vector<Line> lines{};
  std::optional<double> zone{};  // shades -zone .. zone
  std::optional<Line> shade{};   // a band behind all lines: its low and high
  double height = 240;
  bool legend = true;
};

/// A <figure>: title, note, the chart with axes, its legend. Lines are thinned to 600 points each.
void draw(Markup&, const LineChart&);
/// The chart's <svg> alone, as wide as its surroundings.
void draw_plot(Markup&, const LineChart&);

/// The legend's entry for one line: a stroke with its mark, and the name.
void legend_entry(Markup&, const std::string& name, int style, bool mark);

}  // namespace octet::telemetry::report
