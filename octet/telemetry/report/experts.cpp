#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/heat_map.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/table.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

constexpr std::size_t most_columns = 120;

std::vector<HeatRow> rows_of(const ExpertsEvent& e) {
  std::vector<HeatRow> rows;
  for (const std::int64_t layer : e.layers) {
    const std::string name = format("layers.{}", layer);
    rows.push_back({name, name, "layers"});
  }
  return rows;
}

/// The lowest entropy of the events that share a column.
HeatMap balance_map(const RunRecord& run, const std::string& name) {
  const std::vector<ExpertsEvent>& events = run.experts;
  HeatMap map{
      .title = "Balance of experts: " + name,
      .note = "Entropy of a layer's loads, as a share of that of equal loads: 1 is balance, 0 is one expert for all tokens.",
      .x_label = "step",
      .first = double(events.front().step),
      .last = double(events.back().step),
      .rows = rows_of(events.front()),
      .columns = std::min(events.size(), most_columns),
      .bins = {{0.5, "hot", "< 0.5"}, {0.7, "h6", "< 0.7"}, {0.9, "h4", "< 0.9"}, {0.97, "h2", "< 0.97"}, {INFINITY, "h0", "≥ 0.97"}}};
  map.values.assign(map.rows.size() * map.columns, NAN);
  for (std::size_t i = 0; i < events.size(); ++i)
    for (std::size_t row = 0; row < std::min(map.rows.size(), events[i].layers.size()); ++row) {
      float& cell = map.values[row * map.columns + i * map.columns / events.size()];
      cell = std::fmin(cell, float(load_entropy(events[i], row)));
    }
  return map;
}

HeatMap load_map(const ExpertsEvent& e, const std::string& name) {
  HeatMap map{.title = format("Loads at step {}: {}", e.step, name),
              .note = "Tokens of each expert, as a multiple of the layer's mean. An expert without tokens does not train.",
              .x_label = "expert",
              .first = 0,
              .last = double(e.experts - 1),
              .rows = rows_of(e),
              .columns = std::size_t(e.experts),
              .bins = {{1e-9, "alarm", "0"},
                       {0.25, "h4", "< ¼"},
                       {0.5, "h2", "< ½"},
                       {2, "h0", "½–2"},
                       {4, "h2", "2–4"},
                       {8, "h4", "4–8"},
                       {INFINITY, "hot", "≥ 8"}}};
  map.values.assign(map.rows.size() * map.columns, NAN);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const std::vector<double> loads = relative_loads(e, row);
    std::ranges::copy(loads, map.values.begin() + std::ptrdiff_t(row * map.columns));
  }
  return map;
}

bool has_experts(const Group& g) { return !g.first().experts.empty(); }

/// The last loads of all runs of a group.
struct LastLoads {
  double entropy = INFINITY, fullest = 0, sum_of_fullest = 0;
  std::string place;  // of the fullest
  std::size_t layers = 0, idle = 0, experts = 0;

  explicit LastLoads(const Group& group) {
    for (const RunRecord* run : group.runs)
      if (!run->experts.empty()) add(run->experts.back());
  }

 private:
  void add(const ExpertsEvent& e) {
    for (std::size_t i = 0; i < e.layers.size(); ++i) {
      const std::vector<double> loads = relative_loads(e, i);
      if (loads.empty()) continue;
      const auto most = std::ranges::max_element(loads);
      if (*most > fullest) fullest = *most, place = format("layers.{}, expert {}", e.layers[i], most - loads.begin());
      entropy = std::fmin(entropy, load_entropy(e, i)), sum_of_fullest += *most;
      layers += 1, experts += loads.size(), idle += std::size_t(std::ranges::count(loads, 0.0));
    }
  }
};

void write_loads(Markup& m, const Study& study) {
  write_groups(m, study,
               {study.comparison ? "Arm" : "Run", "Lowest entropy of a layer", "Fullest expert, × mean", "Fullest, mean of layers",
                "Experts without tokens"},
               [](const Group& group) -> std::vector<std::string> {
                 if (!has_experts(group)) return {};
                 const LastLoads l(group);
                 if (l.layers == 0) return {};
                 return {number_text(l.entropy, 3), format("{} in {}", number_text(l.fullest, 2), l.place),
                         number_text(l.sum_of_fullest / double(l.layers), 2), format("{} of {}", l.idle, l.experts)};
               });
}

}  // namespace

void write_experts(Markup& m, const Study& study) {
  if (std::ranges::none_of(study.groups, has_experts)) return;
  const auto section = m.in("section", {{"class", "health"}});
  m.element("h2", "Experts");
  m.element("p", "Loads of the last measured step of each run; seeds of an arm count together.", {{"class", "soft"}});
  write_loads(m, study);
  for (const Group& group : study.groups) {
    if (!has_experts(group)) continue;
    const ExpertsEvent& last = group.first().experts.back();
    const auto maps = m.in("div", {{"class", "maps"}, {"style", "--labels:" + coordinate(label_width(rows_of(last)), 0) + "px"}});
    draw(m, balance_map(group.first(), group.name));
    draw(m, load_map(last, group.name));
  }
}

}  // namespace octet::telemetry::report
