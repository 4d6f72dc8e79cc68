#include <algorithm>
#include <cmath>

#include "octet/base/aligned.hpp"
#include "octet/base/text.hpp"
#include "octet/bench/rank_table.hpp"
#include "octet/bench/scaling.hpp"
#include "octet/telemetry/report/svg_file.hpp"

namespace octet::bench {
namespace {

namespace report = telemetry::report;

std::string times(double x) { return fixed(x, 2); }

bool overlaps(const ScalingResult& r) {
  return std::any_of(r.rows.begin(), r.rows.end(), [](const ScalingRow& row) { return row.overlaps; });
}

std::vector<std::string> cells_of(const ScalingRow& row, bool shows_overlap) {
  const RankTimes part = row.steps.mean();
  std::vector<std::string> out{std::string(name(row.kind)), row.recipe, std::to_string(row.steps.ranks)};
  if (shows_overlap) out.push_back(row.steps.ranks == 1 ? "-" : row.overlaps ? "yes" : "no");
  for (const std::string& cell :
       {grouped(std::llround(row.steps.tokens)), milliseconds(row.steps.seconds.median), quartiles(row.steps.seconds),
        grouped(std::llround(row.steps.rate())), times(row.gain), fixed(100 * row.efficiency(), 0) + "%", milliseconds(part.compute()),
        milliseconds(part.communication), milliseconds(part.update), bytes_text(part.peak_bytes), bytes_text(part.sent_bytes)})
    out.push_back(cell);
  return out;
}

std::string gain_text(const OverlapGain& g) {
  return format("overlap hides {}% of the communication of {} ranks ({}, {}): {} ms exposed instead of {}\n", fixed(100 * g.share(), 0),
                g.ranks, name(g.kind), g.recipe, milliseconds(g.exposed), milliseconds(g.exposed_without));
}

json::Value json_of(const ScalingRow& row) {
  json::Object out{{"scaling", std::string(name(row.kind))}, {"precision", row.recipe}, {"overlap", row.overlaps}};
  for (json::Member& m : members_of(row.steps)) out.push_back(std::move(m));
  out.push_back({"gain", row.gain}), out.push_back({"efficiency", row.efficiency()});
  return out;
}

// Lines of one kind and recipe.
std::vector<report::Line> lines_of(const ScalingResult& r) {
  std::vector<report::Line> lines{{.name = "as many times as ranks", .style = 0, .points = {}}};
  for (const ScalingRow& row : r.rows) {
    if (row.overlaps != overlaps(r)) continue;
    const std::string label = format("{}, {}", name(row.kind), row.recipe);
    if (lines.back().name != label) lines.push_back({.name = label, .style = int(lines.size()), .points = {}});
    lines.back().points.push_back({double(row.steps.ranks), row.gain}), lines.back().marks.push_back(lines.back().points.back());
  }
  lines.front().points = {{1, 1}, {double(r.facts.place.ranks), double(r.facts.place.ranks)}};
  return lines;
}

// The parts of each step; those that are unknown are left out.
report::BarChart parts_of(const ScalingResult& r) {
  report::BarChart chart{.title = "Parts of a step", .note = "Medians of the ranks, and their mean", .unit = "ms per step", .bars = {}};
  for (const ScalingRow& row : r.rows) {
    const RankTimes part = row.steps.mean();
    std::string label = format("{}, {}, {}", name(row.kind), row.recipe, counted(row.steps.ranks, "rank"));
    if (overlaps(r) && row.steps.ranks > 1) label += row.overlaps ? ", overlap" : ", no overlap";
    const bool known = std::isfinite(part.compute());
    chart.bars.push_back({label,
                          milliseconds(part.seconds),
                          {{"compute", "m0", 1e3 * (known ? part.compute() : 0)},
                           {"exposed communication", "m4", 1e3 * (known ? part.communication : 0)},
                           {"update", "m3", 1e3 * (known ? part.update : 0)},
                           {"step", "m6", 1e3 * (known ? 0 : part.seconds)}}});
  }
  return chart;
}

}  // namespace

std::string table_text(const ScalingResult& r) {
  const bool shows_overlap = overlaps(r);
  std::vector<std::string> head{"scaling", "precision", "ranks"};
  if (shows_overlap) head.push_back("overlap");
  for (const char* column : {"tokens/step", "step ms", "quartiles", "tok/s", "x 1 rank", "efficiency", "compute ms", "exposed comm ms",
                             "update ms", "memory/rank", "sent/rank"})
    head.push_back(column);
  TextTable lines{head};
  for (const ScalingRow& row : r.rows) lines.push_back(cells_of(row, shows_overlap));
  std::string out = head_text(r.facts) + aligned(lines, 2);
  for (const OverlapGain& g : r.gains()) out += gain_text(g);
  return out;
}

json::Value to_json(const ScalingResult& r) {
  json::Array rows, gains;
  for (const ScalingRow& row : r.rows) rows.push_back(json_of(row));
  for (const OverlapGain& g : r.gains())
    gains.push_back(json::Object{{"scaling", std::string(name(g.kind))},
                                 {"precision", g.recipe},
                                 {"ranks", g.ranks},
                                 {"exposed_seconds", g.exposed},
                                 {"exposed_seconds_without", g.exposed_without},
                                 {"hidden_share", g.share()}});
  json::Value out = to_json(r.facts);
  out.set("rows", rows), out.set("overlap", gains);
  return out;
}

std::string svg_text(const ScalingResult& r) {
  report::LineChart chart{.title = format("Training steps on 1 to {} ranks", r.facts.place.ranks),
                          .note = format("{}, {}", r.facts.model, r.facts.place.machine),
                          .x_label = "ranks",
                          .y_label = "tokens per second, over those of one rank"};
  chart.lines = lines_of(r);
  double top = r.facts.place.ranks;
  for (const ScalingRow& row : r.rows) top = std::max(top, row.gain);
  for (const int n : counts_up_to(r.facts.place.ranks)) chart.x_ticks.push_back(n);
  chart.x = report::linear_axis(1, r.facts.place.ranks), chart.y = {.low = 0, .high = 1.05 * top};
  return report::svg_file({chart, parts_of(r)});
}

}  // namespace octet::bench
