#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "octet/telemetry/paired_gap.hpp"
#include "octet/watch/answers.hpp"

// Several runs beside each other.

namespace octet::watch {
namespace {

using json::Array, json::Object, json::Value;

constexpr std::size_t most_compared = 8;

// "train.steps" -> "500" for every leaf of a configuration.
void flatten(const Value& value, const std::string& path, std::map<std::string, std::string>& into) {
  if (const Object* object = value.object()) {
    for (const auto& member : *object) flatten(member.value, path.empty() ? member.name : path + "." + member.name, into);
  } else {
    into[path] = value.text() ? *value.text() : value.dump(json::Layout::line, json::Invalid::replace);
  }
}

using Table = std::map<std::string, std::string>;

Table config_of(const WatchedRun& run) {
  Table out;
  flatten(json::parse({.text = run.facts().config_json, .file = "run.json"}), "", out);
  return out;
}

Table plan_of(const WatchedRun& run) {
  Table out;
  for (const auto& row : run.facts().plan) out[row.path] = row.precision;
  return out;
}

// Rows {key, values} of the keys that differ; null where a run lacks one.
Array differing(const std::vector<Table>& tables) {
  std::set<std::string> keys;
  for (const Table& table : tables)
    for (const auto& [key, value] : table) keys.insert(key);
  Array rows;
  for (const std::string& key : keys) {
    Array values;
    bool same = true;
    for (const Table& table : tables) {
      const auto at = table.find(key), first = tables.front().find(key);
      same = same && (at == table.end()) == (first == tables.front().end()) && (at == table.end() || at->second == first->second);
      values.push_back(at == table.end() ? Value() : Value(at->second));
    }
    if (!same) rows.push_back(Object{{"key", key}, {"values", std::move(values)}});
  }
  return rows;
}

// Mean losses of both runs over the same steps, at the coarser of both strides.
std::map<std::int64_t, CurvePoint> at_stride(const Curve& curve, std::int64_t stride) {
  std::map<std::int64_t, CurvePoint> out;
  for (const CurvePoint& p : curve.all()) {
    const auto [at, fresh] = out.emplace(p.first / stride, p);
    if (!fresh) at->second.absorb(p);
  }
  return out;
}

/// Relative differences (other - reference) / reference of the last half of the steps that both have.
Value difference(const RunHistory& reference, const RunHistory& other) {
  const auto a = reference.curves().find("loss"), b = other.curves().find("loss");
  if (a == reference.curves().end() || b == other.curves().end()) return {};
  const std::int64_t stride = std::max(a->second.stride(), b->second.stride());
  const auto left = at_stride(a->second, stride), right = at_stride(b->second, stride);
  std::vector<double> shares;
  Array steps, values;
  for (const auto& [key, p] : left) {
    const auto q = right.find(key);
    if (q == right.end()) continue;
    const double share = (q->second.mean() - p.mean()) / p.mean();
    steps.emplace_back(p.last), append_number(values, share), shares.push_back(share);
  }
  const std::size_t from = shares.size() / 2;
  const telemetry::PairedGap gap = telemetry::paired_gap(std::span(shares).subspan(from));
  return Object{{"mean", number_json(gap.mean)},
                {"half_width", number_json(telemetry::half_width(gap, 0.95))},
                {"from_step", from < steps.size() ? steps[from] : Value()},
                {"pairs", gap.pairs},
                {"steps", std::move(steps)},
                {"values", std::move(values)}};
}

}  // namespace

Value compare_answer(Runs& runs, const Target& target) {
  Array rows;
  std::vector<Table> configs, plans;
  const std::vector<std::size_t> numbers = numbers_of(target, "runs", runs.size(), most_compared);
  for (const std::size_t i : numbers) {
    WatchedRun& run = runs.fresh(i);
    configs.push_back(config_of(run)), plans.push_back(plan_of(run));
    const RunHistory &history = run.history(), &reference = runs.loaded(numbers.front()).history();
    const auto& step = history.last_step();
    const auto& eval = history.last_eval();
    rows.push_back(Object{{"run", i},
                          {"name", run.name()},
                          {"condition", to_text(run.condition())},
                          {"complete", run.complete()},
                          {"step", step ? Value(step->step) : Value()},
                          {"loss", step ? number_json(step->loss) : Value()},
                          {"eval_loss", eval ? number_json(eval->loss) : Value()},
                          {"tokens_per_second", step ? number_json(step->tokens_per_second) : Value()},
                          {"memory", run.facts().memory.peak},
                          {"skipped", history.skipped()},
                          {"difference", difference(reference, history)}});
  }
  return Object{{"runs", std::move(rows)},
                {"config", configs.empty() ? Array() : differing(configs)},
                {"plan", plans.empty() ? Array() : differing(plans)}};
}

}  // namespace octet::watch
