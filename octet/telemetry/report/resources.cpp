#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/median.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/report/bar_chart.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/palette.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

double mean_rate(const Group& group) {
  double sum = 0;
  for (const RunRecord* run : group.runs) sum += median_tokens_per_second(*run);
  return sum / double(group.runs.size());
}

/// Median share of the machine's limit over the steps of the first run.
double median_share(const Group& group) {
  std::vector<double> shares;
  for (const StepEvent& e : group.first().steps)
    if (std::isfinite(e.limit_share)) shares.push_back(e.limit_share);
  return median_of(std::move(shares));
}

void draw_throughput(Markup& m, const Study& study) {
  BarChart chart{.title = "Throughput",
                 .note =
                     "Median over steps; in brackets the share of the rate that the machine's limits, measured at the start, allow. "
                     "Above 100 %: the machine was busier at the start than later.",
                 .unit = "tokens per second",
                 .bars = {}};
  for (const Group& group : study.groups) {
    const double rate = mean_rate(group), share = median_share(group);
    std::string text = whole_text(rate);
    if (const Group* base = study.baseline(); base && base != &group) text += format(" · {}×", number_text(rate / mean_rate(*base), 2));
    if (std::isfinite(share)) text += format(" ({} %)", number_text(100 * share, 0));
    chart.bars.push_back({group.name, text, {{group.name, series_class(group.style) + " solid", rate}}});
  }
  draw(m, chart);
}

void draw_rate_over_time(Markup& m, const Group& group) {
  LineChart chart{.title = "Throughput: " + group.name,
                  .note = format("Median {} tokens per second, {} % of the rate that the machine's limits, measured at the start, allow.",
                                 whole_text(mean_rate(group)), number_text(100 * median_share(group), 0)),
                  .x_label = "step",
                  .y_label = "tokens per second",
                  .height = 150,
                  .legend = false};
  Line line{.name = "tokens per second"};
  std::vector<double> rates;
  for (const StepEvent& e : group.first().steps) {
    line.points.push_back({double(e.step), e.tokens_per_second});
    if (std::isfinite(e.tokens_per_second)) rates.push_back(e.tokens_per_second);
  }
  chart.x = {.low = 0, .high = std::max(1.0, line.points.empty() ? 1.0 : line.points.back().x)};
  chart.y = {.low = 0, .high = rates.empty() ? 1 : 1.1 * std::max(quantile(rates, 0.99), 1e-9)};
  chart.lines.push_back(std::move(line));
  draw(m, chart);
}

/// Names of all categories, in the order of their first appearance.
std::vector<std::string> categories_of(const Study& study) {
  std::vector<std::string> names;
  for (const Group& group : study.groups)
    for (const auto& c : group.first().facts.memory.categories)
      if (c.bytes > 0 && std::find(names.begin(), names.end(), c.name) == names.end()) names.push_back(c.name);
  return names;
}

std::int64_t bytes_of(const MemoryUse& memory, const std::string& name) {
  for (const auto& c : memory.categories)
    if (c.name == name) return c.bytes;
  return 0;
}

void draw_memory(Markup& m, const Study& study, const std::vector<std::string>& names) {
  BarChart chart{
      .title = titled(study, "Peak memory"), .note = "At the run's peak.", .unit = "bytes, by category", .bars = {}, .legend = true};
  for (const Group& group : study.groups) {
    const MemoryUse& memory = group.first().facts.memory;
    Bar bar{group.name, bytes_text(double(memory.peak)), {}};
    for (std::size_t i = 0; i < names.size(); ++i) bar.parts.push_back({names[i], category_class(i), double(bytes_of(memory, names[i]))});
    chart.bars.push_back(std::move(bar));
  }
  draw(m, chart);
}

void write_memory_table(Markup& m, const Study& study, const std::vector<std::string>& categories) {
  std::vector<std::string> names{"Peak memory"};
  names.insert(names.end(), categories.begin(), categories.end());
  names.emplace_back("total");
  write_groups(m, study, names, [&](const Group& group) {
    const MemoryUse& memory = group.first().facts.memory;
    std::vector<std::string> out;
    for (const auto& name : categories) {
      const std::int64_t bytes = bytes_of(memory, name);
      out.push_back(bytes ? bytes_text(double(bytes)) : "–");
    }
    out.push_back(bytes_text(double(memory.peak)));
    return out;
  });
}

/// A metric of GPUs, one line per run that knows it; nothing where none does.
void draw_gpus(Markup& m, const Study& study, const Metric& metric) {
  LineChart chart{.title = titled(study, metric.title),
                  .note = "In the steps that measure.",
                  .x_label = "step",
                  .y_label = metric.unit,
                  .height = 150,
                  .legend = study.groups.size() > 1};
  double last = 1;
  std::vector<double> values;
  for (const Group& group : study.groups) {
    Line line{.name = group.name, .style = group.style};
    for (const GpusEvent& e : group.first().gpus)
      if (const std::optional<double> x = metric.of(e)) {
        line.points.push_back({double(e.step), *x}), values.push_back(*x);
        last = std::max(last, double(e.step));
      }
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) return;
  chart.x = {.low = 0, .high = last}, chart.y = linear_axis(0, quantile(values, 1));
  draw(m, chart);
}

}  // namespace

void write_resources(Markup& m, const Study& study) {
  if (study.groups.empty()) return;
  const auto section = m.in("section");
  m.element("h2", "Speed and memory");
  const auto names = categories_of(study);
  {
    const auto grid = m.in("div", {{"class", "grid"}});
    study.groups.size() > 1 ? draw_throughput(m, study) : draw_rate_over_time(m, study.groups[0]);
    if (!names.empty()) draw_memory(m, study, names);
  }
  if (!names.empty()) write_memory_table(m, study, names);
  if (std::ranges::all_of(study.groups, [](const Group& g) { return g.first().gpus.empty(); })) return;
  m.element("h3", "GPUs", {{"class", "apart"}});
  const auto grid = m.in("div", {{"class", "grid thirds"}});
  for (const char* name : {"gpu_utilization", "gpu_power", "gpu_temperature", "gpu_clock", "gpus_throttled"})
    draw_gpus(m, study, metric(name));
}

}  // namespace octet::telemetry::report
