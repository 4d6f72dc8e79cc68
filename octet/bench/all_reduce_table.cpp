#include <algorithm>

#include "octet/base/aligned.hpp"
#include "octet/bench/all_reduce.hpp"
#include "octet/telemetry/report/svg_file.hpp"

namespace octet::bench {
namespace {

std::string micros(double seconds) { return grouped((long long)(seconds * 1e6 + 0.5)); }
std::string percent(double share) { return share == 0 ? "0" : share < 1e-5 ? "<0.001%" : fixed(100 * share, 3) + "%"; }

std::string speed_table(const AllReduceResult& r) {
  TextTable lines{{"tensor", "sum", "median us", "quartiles", "algorithm GB/s", "bus GB/s", "bytes sent per rank"}};
  for (const AllReduceRow& row : r.rows)
    lines.push_back({bytes_text(double(row.bytes)), std::string(name(row.way)), micros(row.seconds.median),
                     micros(row.seconds.low) + "-" + micros(row.seconds.high), fixed(row.algorithm_rate() / 1e9, 3),
                     fixed(row.bus_rate() / 1e9, 3), grouped(row.bytes_sent)});
  return aligned(lines, 2);
}

std::string quality_table(const AllReduceResult& r) {
  TextTable lines{{"values", "sum", "ranks", "signal-to-noise dB", "underflow", "overflow", "mu"}};
  for (const SumQuality& q : r.quality)
    lines.push_back({q.coherent ? "equal" : "independent", std::string(name(q.way)), std::to_string(q.ranks), fixed(q.decibel, 1),
                     percent(q.underflow), percent(q.overflow), q.way == Wire::e4m3_shared ? shortest(float(q.mu)) : ""});
  return aligned(lines, 2);
}

json::Value json_of(const AllReduceRow& r) {
  return json::Object{{"sum", std::string(name(r.way))},
                      {"bytes", r.bytes},
                      {"bytes_sent", r.bytes_sent},
                      {"seconds", r.seconds.median},
                      {"seconds_low", r.seconds.low},
                      {"seconds_high", r.seconds.high},
                      {"algorithm_bytes_per_second", r.algorithm_rate()},
                      {"bus_bytes_per_second", r.bus_rate()}};
}

json::Value json_of(const SumQuality& q) {
  return json::Object{
      {"sum", std::string(name(q.way))}, {"equal_values", q.coherent}, {"ranks", q.ranks}, {"signal_to_noise_db", q.decibel},
      {"underflow", q.underflow},        {"overflow", q.overflow},     {"mu", q.mu}};
}

namespace report = telemetry::report;

report::Line line_of(const AllReduceResult& r, Wire way, int style) {
  report::Line line{.name = std::string(name(way)), .style = style, .points = {}};
  for (const AllReduceRow& row : r.rows)
    if (row.way == way) line.points.push_back({double(row.bytes), row.bus_rate() / 1e9});
  std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  line.marks = line.points;
  return line;
}

// Both axes are logarithmic, from the smallest to the largest value.
void scale_axes(report::LineChart& chart) {
  std::vector<report::Points> lines;
  for (const report::Line& line : chart.lines) lines.push_back(line.points);
  const report::Extent y = report::extent(lines);
  double low = lines.back().front().x, high = low;
  for (const report::Points& points : lines)
    for (const report::Point& p : points) low = std::min(low, p.x), high = std::max(high, p.x);
  chart.x = {.kind = report::Axis::Kind::log, .low = low, .high = std::max(high, 2 * low)};
  chart.y = {.kind = report::Axis::Kind::log, .low = y.low / 1.5, .high = 1.5 * y.high};
}

}  // namespace

std::string svg_text(const AllReduceResult& r) {
  check(r.ranks > 1 && !r.rows.empty(), "one rank exchanges nothing, so there is no bandwidth to draw");
  report::LineChart chart{.title = format("Sums over {} ranks", r.ranks),
                          .note = format("{}; {}", r.machine, machine::backend_text(r.backend)),
                          .x_label = "bytes of the tensor, f32 or BF16",
                          .y_label = "bus bandwidth [GB/s]"};
  for (const Wire way : {Wire::f32, Wire::bf16, Wire::e4m3, Wire::e4m3_shared})
    if (report::Line line = line_of(r, way, int(chart.lines.size()) + 1); !line.points.empty()) chart.lines.push_back(std::move(line));
  if (r.copy_bytes_per_second > 0) {
    const report::Points& sizes = chart.lines.front().points;
    const double rate = r.copy_bytes_per_second / 1e9;
    chart.lines.push_back({.name = "copy of memory on this machine, read and written",
                           .style = 0,
                           .points = {{sizes.front().x, rate}, {sizes.back().x, rate}}});
  }
  scale_axes(chart);
  return report::svg_file({chart});
}

std::string table_text(const AllReduceResult& r) {
  std::string out = format("{}; {} ranks, {}\n", r.machine, r.ranks, machine::backend_text(r.backend));
  if (!r.rows.empty()) out += "\n" + speed_table(r);
  if (!r.quality.empty()) out += "\n" + quality_table(r);
  return out;
}

json::Value to_json(const AllReduceResult& r) {
  json::Array rows, quality;
  for (const AllReduceRow& row : r.rows) rows.push_back(json_of(row));
  for (const SumQuality& q : r.quality) quality.push_back(json_of(q));
  return json::Object{{"machine", r.machine}, {"backend", r.backend}, {"ranks", r.ranks}, {"rows", rows}, {"quality", quality}};
}

}  // namespace octet::bench
