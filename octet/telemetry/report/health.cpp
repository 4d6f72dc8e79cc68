#include <algorithm>
#include <cmath>
#include <map>

#include "octet/base/text.hpp"
#include "octet/telemetry/quantization_loss.hpp"
#include "octet/telemetry/report/heat_map.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/sections.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::size_t most_columns = 120, fewest_columns = 30, most_cells = 24000, cells_of_picture = 2400;

/// "layers.3.mlp.up" -> "layers.3": up to its first number, or its first part where it has none.
std::string layer_of(const std::string& path) {
  std::size_t from = 0;
  while (from < path.size()) {
    const std::size_t to = std::min(path.find('.', from), path.size());
    if (to > from &&
        std::all_of(path.begin() + std::ptrdiff_t(from), path.begin() + std::ptrdiff_t(to), [](char c) { return c >= '0' && c <= '9'; }))
      return path.substr(0, to);
    from = to + 1;
  }
  return path.substr(0, path.find('.'));
}

std::vector<HeatRow> rows_of(const RunFacts& run) {
  std::vector<HeatRow> rows;
  for (const auto& q : run.quantizers) rows.push_back({q.path + "." + q.operand, q.path, layer_of(q.path)});
  return rows;
}

std::size_t columns_of(const RunRecord& run, std::size_t cells) {
  const std::size_t rows = std::max<std::size_t>(run.facts.quantizers.size(), 1);
  return std::min(run.health.size(), std::clamp(cells / rows, fewest_columns, most_columns));
}

/// The worst value of the snapshots that share a column, by `worse(a, b)`; NaN where none is known.
template <class Values, class Worse>
HeatMap map_of(const RunRecord& run, Values values, float factor, Worse worse, std::size_t cells = most_cells) {
  const std::size_t rows = run.facts.quantizers.size(), n = run.health.size(), columns = columns_of(run, cells);
  HeatMap map;
  map.rows = rows_of(run.facts), map.columns = columns, map.x_label = "step";
  map.first = double(run.health.front().step), map.last = double(run.health.back().step);
  map.values.assign(rows * columns, NAN), map.alarms.assign(rows * columns, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t column = i * columns / n;
    const auto seen = values(run.health[i]);
    for (std::size_t row = 0; row < rows; ++row) {
      float& cell = map.values[row * columns + column];
      const float value = factor * seen[row];
      if (!std::isnan(value) && (std::isnan(cell) || worse(value, cell))) cell = value;
      if (run.health[i].nonfinite[row] > 0) map.alarms[row * columns + column] = 1;
    }
  }
  return map;
}

/// Fractions as percent: exactly 0, then one class per decade.
std::vector<HeatBin> percent_bins() {
  return {{1e-12, "h0", "0"}, {0.01, "h1", "< 0.01"}, {0.1, "h2", "< 0.1"}, {1, "h3", "< 1"}, {10, "h4", "< 10"}, {INFINITY, "h6", "≥ 10"}};
}

/// Bits of headroom of every quantizer. A maximum slightly above the format's that rounds to it is not clipped: if nothing saturated, the
/// headroom is at least 0.
std::vector<float> headroom_of(const HealthEvent& e) {
  std::vector<float> out = e.headroom_bits;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] < 0 && e.saturated[i] == 0) out[i] = 0;
  return out;
}

HeatMap headroom_map_of(const RunRecord& run, const std::string& name, std::size_t cells) {
  HeatMap headroom = map_of(
      run, headroom_of, 1, [](float a, float b) { return a < b; }, cells);
  headroom.title = "Headroom [bits]: " + name,
  headroom.note = "log₂ of the format's largest value over the largest scaled; below 0: values were clipped.";
  headroom.bins = {{-0.001, "hot", "< 0"}, {0.5, "h0", "0–½"}, {1, "h1", "½–1"},       {2, "h2", "1–2"},
                   {4, "h3", "2–4"},       {8, "h4", "4–8"},   {INFINITY, "h6", "≥ 8"}};
  return headroom;
}

/// Values of a list that events may lack.
auto list_or_unknown(std::vector<float> HealthEvent::*list) {
  return [list](const HealthEvent& e) { return (e.*list).empty() ? std::vector<float>(e.sqnr_db.size(), NAN) : e.*list; };
}

/// Maps side by side, the first of which has the names of the rows.
auto map_grid(Markup& m, const RunRecord& run) {
  const auto rows = rows_of(run.facts);
  return m.in("div", {{"class", "maps four"}, {"style", "--labels:" + coordinate(label_width(rows), 0) + "px"}});
}

void draw_block_maps(Markup& m, const RunRecord& run, const std::string& name) {
  if (std::ranges::all_of(run.health, [](const HealthEvent& e) { return e.scale_deviation.empty(); })) return;
  const auto maps = map_grid(m, run);
  const auto worse = [](float a, float b) { return a > b; };
  HeatMap spread = map_of(run, list_or_unknown(&HealthEvent::scale_deviation), 1, worse);
  spread.title = "Spread of block scales [octaves]: " + name, spread.nothing = "Not known.";
  spread.note = "Standard deviation of log₂ of the scales of a tensor's blocks or rows.";
  spread.bins = {{0.25, "h0", "< ¼"}, {0.5, "h1", "¼–½"}, {1, "h2", "½–1"}, {2, "h3", "1–2"}, {4, "h4", "2–4"}, {INFINITY, "h6", "≥ 4"}};
  draw(m, spread);
  if (std::ranges::any_of(run.health, [](const HealthEvent& e) { return !e.lossy_blocks.empty(); })) {
    HeatMap lossy = map_of(run, list_or_unknown(&HealthEvent::lossy_blocks), 100, worse);
    lossy.title = "Blocks with lost values [%]: " + name, lossy.nothing = "None at any step.";
    lossy.note = "Blocks that have a clipped or flushed value.", lossy.bins = percent_bins();
    draw(m, lossy);
  }
}

void draw_maps(Markup& m, const RunRecord& run, const std::string& name) {
  const auto maps = map_grid(m, run);
  draw(m, headroom_map_of(run, name, most_cells));

  HeatMap sqnr = map_of(
      run, [&](const HealthEvent& e) { return below_rounding(e, run.facts.quantizers); }, 1, [](float a, float b) { return a > b; });
  sqnr.title = "SQNR below rounding [dB]: " + name;
  sqnr.note = "Distance from the SQNR that rounding alone leaves: 32.2 dB in E4M3, 26.2 dB in E5M2.";
  sqnr.nothing = "Not known.";
  sqnr.bins = {{1, "h0", "< 1"}, {2, "h1", "1–2"}, {4, "h2", "2–4"}, {7, "h3", "4–7"}, {10, "h4", "7–10"}, {INFINITY, "hot", "≥ 10"}};
  draw(m, sqnr);

  HeatMap saturated = map_of(
      run, [](const HealthEvent& e) { return std::span(e.saturated); }, 100, [](float a, float b) { return a > b; });
  saturated.title = "Saturated [%]: " + name, saturated.note = "Values clipped to the format's largest.", saturated.bins = percent_bins();
  saturated.nothing = "None at any step.";
  draw(m, saturated);

  HeatMap flushed = map_of(
      run, [](const HealthEvent& e) { return std::span(e.flushed); }, 100, [](float a, float b) { return a > b; });
  flushed.title = "Flushed to zero [%]: " + name, flushed.note = "Non-zero values that became 0.", flushed.bins = percent_bins();
  flushed.nothing = "None at any step.";
  draw(m, flushed);
}

std::string operand_name(const std::string& operand) {
  for (const auto& [name, text] : {std::pair("x", "activations x"),
                                   {"w", "weights w"},
                                   {"dy", "gradients dy"},
                                   {"saved", "saved activations"},
                                   {"q", "queries q"},
                                   {"k", "keys k"},
                                   {"v", "values v"},
                                   {"p", "probabilities p"},
                                   {"o", "attention's output o"},
                                   {"do", "gradients of o"},
                                   {"dp", "gradients of scores dp"},
                                   {"dq", "gradients dq"},
                                   {"dk", "gradients dk"},
                                   {"dv", "gradients dv"}})
    if (operand == name) return text;
  return operand;
}

/// For each kind of operand the median over its quantizers of log2(scale), and their extremes. A block layout's quantizer counts with its
/// smallest scale, that of the block with the largest value.
std::vector<Line> scale_lines(const RunRecord& run) {
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < run.facts.quantizers.size(); ++i) kinds[run.facts.quantizers[i].operand].push_back(i);
  std::vector<Line> lines;
  for (const char* known : {"w", "x", "dy", "saved"})
    if (kinds.count(known)) lines.push_back({.name = known, .style = int(lines.size()) + 1});
  for (const auto& [operand, quantizers] : kinds)
    if (std::none_of(lines.begin(), lines.end(), [&name = operand](const Line& l) { return l.name == name; }))
      lines.push_back({.name = operand, .style = int(lines.size()) + 1});

  const std::size_t every = std::max<std::size_t>(1, run.scales.size() / 600);
  for (Line& line : lines) {
    for (std::size_t i = 0; i < run.scales.size(); i += every) {
      const ScalesEvent& e = run.scales[i];
      std::vector<double> lowest;
      double low = INFINITY, high = -INFINITY;
      for (const std::size_t q : kinds[line.name]) {
        if (!(e.scale_min[q] > 0) || !(e.scale_max[q] > 0) || std::isinf(e.scale_max[q])) continue;
        const double a = std::log2(e.scale_min[q]), b = std::log2(e.scale_max[q]);
        lowest.push_back(a), low = std::min(low, a), high = std::max(high, b);
      }
      if (lowest.empty()) continue;
      const double x = double(e.step);
      line.points.push_back({x, quantile(lowest, 0.5)}), line.low.push_back({x, low}), line.high.push_back({x, high});
    }
    line.name = operand_name(line.name);
  }
  return lines;
}

/// The range of the lines and of their bands up to `reach` bits from the line. A block of zeros has the largest possible scale and would
/// flatten all others; such a band leaves the chart.
Axis scale_axis(const std::vector<Line>& lines) {
  constexpr double reach = 16;
  double low = INFINITY, high = -INFINITY;
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.points.size(); ++i) {
      const double middle = line.points[i].y;
      low = std::min(low, std::max(line.low[i].y, middle - reach)), high = std::max(high, std::min(line.high[i].y, middle + reach));
    }
  return linear_axis(low, high);
}

void draw_scales(Markup& m, const RunRecord& run, const std::string& name) {
  if (run.scales.empty()) return;
  LineChart chart{
      .title = "Scale factors: " + name,
      .note = "Line: median over layers. Band: smallest to largest; where it leaves the chart, a block was all zeros or nearly so.",
      .x_label = "step",
      .y_label = "log₂ of the scale that multiplies before encoding",
      .height = 200};
  chart.lines = scale_lines(run);
  chart.x = {.low = 0, .high = std::max(1.0, double(run.scales.back().step))}, chart.y = scale_axis(chart.lines);
  draw(m, chart);
}

std::string summary_of(const RunRecord& run) {
  std::map<std::string, int> layouts;
  for (const auto& q : run.facts.quantizers) ++layouts[q.operand + " " + q.format + " " + q.block];
  std::string out;
  for (const auto& [layout, count] : layouts) out += (out.empty() ? "" : ", ") + layout;
  return out;
}

}  // namespace

std::optional<HeatMap> headroom_map(const Study& study) {
  for (const Group& group : study.groups)
    if (!group.first().facts.quantizers.empty() && !group.first().health.empty())
      return headroom_map_of(group.first(), group.name, cells_of_picture);
  return std::nullopt;
}

void write_health(Markup& m, const Study& study) {
  const auto quantized = [](const Group& g) {
    return !g.first().facts.quantizers.empty() && !(g.first().health.empty() && g.first().scales.empty());
  };
  if (std::none_of(study.groups.begin(), study.groups.end(), quantized)) return;
  const auto section = m.in("section", {{"class", "health"}});
  m.element("h2", "FP8 health");
  m.element("p",
            format("Layer by step, {}the worst value of each interval of steps. Each layer has a row per 8-bit operand, from above: "
                   "activations (x), weights (w), gradients (dy). The darker (in dark mode: the brighter) a cell, the worse.",
                   study.seeds() > 1 ? "of each recipe's first seed: " : ""),
            {{"class", "soft"}});
  for (const Group& group : study.groups) {
    if (!quantized(group) || group.first().health.empty()) continue;
    const auto details = m.in("details", {{"open", "open"}});
    {
      const auto summary = m.in("summary");
      m.element("span", group.name, {{"class", "name"}});
      m.element("span", summary_of(group.first()), {{"class", "soft"}});
    }
    draw_maps(m, group.first(), group.name);
    draw_block_maps(m, group.first(), group.name);
  }
  m.element("h3", "Scale factors over time");
  const auto grid = m.in("div", {{"class", "grid thirds"}});
  for (const Group& group : study.groups)
    if (quantized(group)) draw_scales(m, group.first(), group.name);
}

}  // namespace octet::telemetry::report
