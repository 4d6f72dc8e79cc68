#pragma once

#include "octet/telemetry/report/line_chart.hpp"

namespace octet::telemetry::report {

/// The chart as an SVG file of its own, 760 pixels wide, with title, note, legend and the report's colours.
std::string svg_file(const LineChart&);

}  // namespace octet::telemetry::report
