#pragma once

#include <string>

#include "octet/telemetry/report/markup.hpp"
#include "octet/telemetry/report/series.hpp"

// A chart is as wide as its column and keeps its height: text and marks have positions in percent and fixed sizes, and only the lines
// between them are stretched, in a nested <svg> of `plot_units` by the height, by strokes that do not scale.

namespace octet::telemetry::report {

inline constexpr double plot_units = 1000;

/// <svg> of a chart, `height` pixels high, with its accessible name and description.
Markup::Element open_chart(Markup&, double height, const std::string& title, const std::string& description);
/// The stretched part: x in [0, plot_units], y in [0, height]; the outside is clipped.
Markup::Element open_plot(Markup&, double height);

/// Path data of the line through points in [0, 1] x [0, 1], y upwards, in a plot of that height; broken where a point is not finite.
std::string line_path(const Points& placed, double height);
/// Path data of the area between two such lines over the same x.
std::string band_path(const Points& low, const Points& high, double height);

/// A text at x (a fraction of the width) and y (pixels from the top). `align` is start, middle or end.
void chart_text(Markup&, double x, double y, const std::string& text, const std::string& classes, const std::string& align = "start");
/// Mark of style i at x (a fraction of the width) and y (pixels from the top).
void chart_mark(Markup&, double x, double y, int style);

}  // namespace octet::telemetry::report
