#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "octet/telemetry/report/bar_chart.hpp"
#include "octet/telemetry/report/heat_map.hpp"
#include "octet/telemetry/report/line_chart.hpp"

namespace octet::telemetry::report {

using Chart = std::variant<LineChart, BarChart, HeatMap>;

/// An SVG file of so many pixels with the report's colours, and what `draw` adds.
std::string svg_file(double width, double height, const std::function<void(Markup&)>& draw);
/// Charts as an SVG file of its own, 760 pixels wide, one under the other, with titles, notes, legends and the report's colours.
std::string svg_file(const std::vector<Chart>&);

}  // namespace octet::telemetry::report
