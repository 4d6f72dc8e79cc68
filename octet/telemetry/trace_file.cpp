#include "octet/telemetry/trace_file.hpp"

#include <algorithm>
#include <map>

#include "octet/base/aligned.hpp"
#include "octet/base/text.hpp"
#include "octet/json/value.hpp"

namespace octet::telemetry {
namespace {

constexpr std::int64_t shortest_gap = 1000;  // ns, in the picture

/// Without return type, namespaces without name, and the list of arguments.
std::string short_name(std::string name) {
  for (const std::string noise : {"(anonymous namespace)::", "octet::cuda::", "octet::"})
    for (std::size_t at; (at = name.find(noise)) != std::string::npos;) name.erase(at, noise.size());
  if (name.starts_with("void ")) name.erase(0, 5);
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string shown_name(const TracedActivity& a) {
  return a.kind == TracedActivity::Kind::kernel ? short_name(a.name) : a.kind == TracedActivity::Kind::copy ? "copy " + a.name : a.name;
}

/// Calls f(begin, end) for every part of the step in which no activity runs.
template <class F>
void each_gap(const std::vector<TracedActivity>& activities, const TracedSpan& step, const F& f) {
  std::int64_t idle_since = step.begin;
  for (const TracedActivity& a : activities) {
    if (a.end <= step.begin) continue;
    if (a.begin >= step.end) break;
    if (a.begin > idle_since) f(idle_since, a.begin);
    idle_since = std::max(idle_since, a.end);
  }
  if (idle_since < step.end) f(idle_since, step.end);
}

bool within(const TracedActivity& a, const StepTrace& trace) {
  return std::any_of(trace.steps.begin(), trace.steps.end(), [&](const TracedSpan& s) { return a.begin >= s.begin && a.begin < s.end; });
}

/// Events of the picture: its lines are "threads" of one "process".
class Picture {
 public:
  explicit Picture(std::int64_t origin) : origin_(origin) {}

  void line(int number, const std::string& name) {
    events_.push_back(
        json::Object{{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", number}, {"args", json::Object{{"name", name}}}});
    events_.push_back(json::Object{
        {"name", "thread_sort_index"}, {"ph", "M"}, {"pid", 0}, {"tid", number}, {"args", json::Object{{"sort_index", number}}}});
  }
  void event(int line, const std::string& name, const char* category, std::int64_t begin, std::int64_t end, json::Object arguments = {}) {
    events_.push_back(json::Object{{"name", name},
                                   {"cat", category},
                                   {"ph", "X"},
                                   {"pid", 0},
                                   {"tid", line},
                                   {"ts", double(begin - origin_) * 1e-3},
                                   {"dur", double(end - begin) * 1e-3},
                                   {"args", std::move(arguments)}});
  }
  std::string text() && { return json::Value(json::Object{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}}).dump() + "\n"; }

 private:
  std::int64_t origin_;
  json::Array events_;
};

}  // namespace

std::vector<TraceRow> trace_rows(const StepTrace& trace) {
  double total = 0;
  TraceRow gaps{.name = "gaps"};
  for (const TracedSpan& step : trace.steps) {
    total += double(step.end - step.begin) * 1e-9;
    each_gap(trace.activities, step,
             [&](std::int64_t begin, std::int64_t end) { ++gaps.count, gaps.seconds += double(end - begin) * 1e-9; });
  }
  std::map<std::string, TraceRow> by_name;
  for (const TracedActivity& a : trace.activities) {
    if (!within(a, trace)) continue;
    TraceRow& row = by_name[shown_name(a)];
    ++row.count, row.seconds += double(a.end - a.begin) * 1e-9;
  }
  std::vector<TraceRow> rows{gaps};
  for (auto& [name, row] : by_name) row.name = name, rows.push_back(row);
  for (TraceRow& row : rows) row.share = total > 0 ? row.seconds / total : 0;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string trace_table(const std::vector<TraceRow>& rows, std::size_t most) {
  constexpr std::size_t widest = 84;
  TextTable table{{"kernel or copy", "ms", "share", "count"}};
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const TraceRow& row = rows[i];
    const std::string name = row.name.size() > widest ? row.name.substr(0, widest) + ".." : row.name;
    table.push_back({name, fixed(row.seconds * 1e3, 2), fixed(row.share * 100, 1) + "%", std::to_string(row.count)});
  }
  return aligned(table);
}

std::string trace_json(const StepTrace& trace) {
  constexpr int steps_line = 0, gaps_line = 1, first_queue_line = 2;
  Picture picture(trace.steps.empty() ? 0 : trace.steps.front().begin);
  picture.line(steps_line, "steps"), picture.line(gaps_line, "gaps");
  std::map<std::uint32_t, int> line_of;
  for (const TracedActivity& a : trace.activities)
    if (within(a, trace) && line_of.emplace(a.queue, first_queue_line + int(line_of.size())).second)
      picture.line(line_of[a.queue], format("queue {}", a.queue));
  for (const TracedSpan& step : trace.steps) {
    picture.event(steps_line, step.name, "step", step.begin, step.end);
    each_gap(trace.activities, step, [&](std::int64_t begin, std::int64_t end) {
      if (end - begin >= shortest_gap) picture.event(gaps_line, "gap", "gap", begin, end);
    });
  }
  for (const TracedActivity& a : trace.activities) {
    if (!within(a, trace)) continue;
    const bool kernel = a.kind == TracedActivity::Kind::kernel;
    picture.event(line_of[a.queue], shown_name(a), kernel ? "kernel" : "copy", a.begin, a.end,
                  kernel ? json::Object{{"name", a.name}} : json::Object{{"bytes", a.bytes}});
  }
  return std::move(picture).text();
}

}  // namespace octet::telemetry
