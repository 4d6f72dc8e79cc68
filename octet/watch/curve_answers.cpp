#include <array>
#include <cmath>
#include <limits>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/watch/answers.hpp"

// Curves, the heat map, and the history of one tensor.

namespace octet::watch {
namespace {

using json::Array, json::Object, json::Value;

constexpr std::int64_t most_points = 4000, most_columns = 400, most_cells = 120000;

Value curve_object(const std::vector<CurvePoint>& points) {
  Array first, last, mean, low, high, nonfinite;
  std::int64_t bad = 0;
  for (const CurvePoint& p : points) {
    first.emplace_back(p.first), last.emplace_back(p.last), append_number(mean, p.mean());
    append_number(low, double(p.range.low)), append_number(high, double(p.range.high));
    nonfinite.emplace_back(p.nonfinite), bad += p.nonfinite;
  }
  Object o{{"first", std::move(first)},
           {"last", std::move(last)},
           {"mean", std::move(mean)},
           {"low", std::move(low)},
           {"high", std::move(high)}};
  if (bad > 0) o.push_back({"nonfinite", std::move(nonfinite)});
  return o;
}

struct Measure {
  const char* name;
  bool of_scales;
  std::size_t index;
};
constexpr std::array<Measure, 9> measures = {{{"headroom", false, health_headroom},
                                              {"saturated", false, health_saturated},
                                              {"flushed", false, health_flushed},
                                              {"sqnr", false, health_sqnr},
                                              {"nonfinite", false, health_nonfinite},
                                              {"spread", false, health_spread},
                                              {"lossy", false, health_lossy},
                                              {"amax", true, scale_amax},
                                              {"scale", true, scale_scale}}};

const TensorHistory& history_of(const WatchedRun& run, const Measure& m) {
  return m.of_scales ? run.history().scales() : run.history().health();
}

const Measure& measure_of(const Target& target) {
  const auto at = target.query.find("measure");
  const std::string name = at == target.query.end() ? "headroom" : at->second;
  for (const Measure& m : measures)
    if (m.name == name) return m;
  throw ConfigError("measure must be headroom, saturated, flushed, sqnr, nonfinite, spread, lossy, amax or scale");
}

struct Steps {
  std::int64_t from, to;
};
Steps steps_of(const Target& target) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return {number_of(target, "from", 0, 0, last), number_of(target, "to", last, 0, last)};
}

}  // namespace

Value series_answer(const WatchedRun& run, const Target& target) {
  const auto [from, to] = steps_of(target);
  const auto points = std::size_t(number_of(target, "points", 1000, 2, most_points));
  Object curves;
  for (const auto& [name, curve] : run.history().curves()) curves.push_back({name, curve_object(curve.merged(from, to, points))});
  return Object{{"news", run.news().next()}, {"complete", run.complete()}, {"curves", std::move(curves)}};
}

Value heat_answer(const WatchedRun& run, const Target& target) {
  const Measure& m = measure_of(target);
  const TensorHistory& history = history_of(run, m);
  const auto [from, to] = steps_of(target);
  const std::int64_t tensors = std::int64_t(history.tensors());
  const std::int64_t columns = std::max<std::int64_t>(
      std::min(number_of(target, "columns", 200, 2, most_columns), most_cells / std::max<std::int64_t>(tensors, 1)), 2);
  const std::vector<TensorRow> rows = history.rows().merged(from, to, std::size_t(columns));
  Array first, last, low, high;
  for (const TensorRow& row : rows) first.emplace_back(row.first), last.emplace_back(row.last);
  for (std::size_t t = 0; t < history.tensors(); ++t) {
    Array lows, highs;
    for (const TensorRow& row : rows) {
      const Range cell = history.cell(row, m.index, t);
      append_number(lows, double(cell.low)), append_number(highs, double(cell.high));
    }
    low.emplace_back(std::move(lows)), high.emplace_back(std::move(highs));
  }
  return Object{
      {"measure", m.name}, {"first", std::move(first)}, {"last", std::move(last)}, {"low", std::move(low)}, {"high", std::move(high)}};
}

Value tensor_answer(const WatchedRun& run, const Target& target) {
  const std::size_t tensors = run.facts().quantizers.size();
  if (tensors == 0) throw ConfigError("this run has no quantized tensors");
  const auto tensor = std::size_t(number_of(target, "tensor", 0, 0, std::int64_t(tensors) - 1));
  const auto points = std::size_t(number_of(target, "points", 1000, 2, most_points));
  const auto [from, to] = steps_of(target);
  Object curves;
  for (const Measure& m : measures) {
    const TensorHistory& history = history_of(run, m);
    Array first, last, low, high;
    for (const TensorRow& row : history.rows().merged(from, to, points)) {
      const Range cell = history.cell(row, m.index, tensor);
      first.emplace_back(row.first), last.emplace_back(row.last);
      append_number(low, double(cell.low)), append_number(high, double(cell.high));
    }
    curves.push_back(
        {m.name, Object{{"first", std::move(first)}, {"last", std::move(last)}, {"low", std::move(low)}, {"high", std::move(high)}}});
  }
  const auto& q = run.facts().quantizers[tensor];
  return Object{{"tensor", tensor},   {"path", q.path},   {"operand", q.operand},
                {"format", q.format}, {"block", q.block}, {"curves", std::move(curves)}};
}

}  // namespace octet::watch
