#pragma once

#include <span>
#include <string>

#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/run_link.hpp"
#include "octet/telemetry/run_record.hpp"

namespace octet::telemetry {

/// A self-contained HTML page about the runs: no script, nothing loaded from elsewhere, charts as inline SVG; for screens from 360
/// pixels on, light and dark, and for paper. With a comparison the runs are grouped by recipe, seeds together, and measured against
/// its baseline; without one every run is shown separately. All texts are escaped.
/// Throws ContractError unless every scales and health event has one entry per quantizer, which read_run ensures.
/// Incidents link to the page of `octet watch` at `watch_address`, with its last slash; "": no links.
std::string report_html(std::span<const RunRecord> runs, const Comparison* comparison = nullptr,
                        const std::string& watch_address = default_watch_address());

/// Writes report_html to `path` atomically. Throws IoError, and DataError for a symbolic link.
void write_report(const std::string& path, std::span<const RunRecord> runs, const Comparison* comparison = nullptr,
                  const std::string& watch_address = default_watch_address());

/// A picture of the runs as an SVG file: loss with its alerts, gradient norm, and headroom of the first run with quantizers.
std::string report_svg(std::span<const RunRecord> runs, const Comparison* comparison = nullptr);

}  // namespace octet::telemetry
