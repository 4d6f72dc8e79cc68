#pragma once

#include <optional>

#include "octet/telemetry/report/bar_chart.hpp"
#include "octet/telemetry/report/line_chart.hpp"

namespace octet::telemetry::report {

/// Charts as an SVG file of its own, 760 pixels wide, with titles, notes, legends and the report's colours; bars are under lines.
std::string svg_file(const LineChart&, const std::optional<BarChart>& bars = {});

}  // namespace octet::telemetry::report
