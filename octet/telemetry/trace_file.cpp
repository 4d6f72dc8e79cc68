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

/// Events of one rank's process in the picture, whose lines are its "threads".
class Picture {
 public:
  Picture(const StepTrace& trace, const TracePlace& place)
      : origin_(trace.steps.empty() ? 0 : trace.steps.front().begin), rank_(place.rank) {
    if (!place.name.empty()) tell("process_name", 0, {{"name", place.name}});
    tell("process_sort_index", 0, {{"sort_index", rank_}});
  }

  int line(const std::string& name) {
    tell("thread_name", lines_, {{"name", name}}), tell("thread_sort_index", lines_, {{"sort_index", lines_}});
    return lines_++;
  }
  void event(int line, const std::string& name, const char* category, std::int64_t begin, std::int64_t end, json::Object arguments = {}) {
    add(json::Object{{"name", name},
                     {"cat", category},
                     {"ph", "X"},
                     {"pid", rank_},
                     {"tid", line},
                     {"ts", double(begin - origin_) * 1e-3},
                     {"dur", double(end - begin) * 1e-3},
                     {"args", std::move(arguments)}});
  }
  std::string text() && { return std::move(text_); }

 private:
  void tell(const char* what, int line, json::Object arguments) {
    add(json::Object{{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", line}, {"args", std::move(arguments)}});
  }
  void add(const json::Value& event) { text_ += (text_.empty() ? "" : ",") + event.dump(json::Layout::line, json::Invalid::replace); }

  std::int64_t origin_, rank_;
  int lines_ = 0;
  std::string text_;
};

void draw_activities(Picture& picture, const StepTrace& trace) {
  const int gaps = picture.line("gaps");
  for (const TracedSpan& step : trace.steps)
    each_gap(trace.activities, step, [&](std::int64_t begin, std::int64_t end) {
      if (end - begin >= shortest_gap) picture.event(gaps, "gap", "gap", begin, end);
    });
  std::map<std::uint32_t, int> line_of;
  for (const TracedActivity& a : trace.activities)
    if (within(a, trace) && !line_of.contains(a.queue)) line_of[a.queue] = picture.line(format("queue {}", a.queue));
  for (const TracedActivity& a : trace.activities) {
    if (!within(a, trace)) continue;
    const bool kernel = a.kind == TracedActivity::Kind::kernel;
    picture.event(line_of[a.queue], shown_name(a), kernel ? "kernel" : "copy", a.begin, a.end,
                  kernel ? json::Object{{"name", a.name}} : json::Object{{"bytes", a.bytes}});
  }
}

using Rows = std::map<std::string, TraceRow>;

void add_time(Rows& rows, const std::string& name, std::int64_t begin, std::int64_t end) {
  TraceRow& row = rows[name];
  row.name = name, ++row.count, row.seconds += double(end - begin) * 1e-9;
}

/// The call without its tensor.
std::string kind_of(const TracedExchange& e) { return e.name.substr(0, e.name.find(" of ")); }

}  // namespace

std::vector<TraceRow> trace_rows(const StepTrace& trace) {
  double total = 0;
  Rows by_name;
  for (const TracedSpan& step : trace.steps) {
    total += double(step.end - step.begin) * 1e-9;
    if (trace.gpu) each_gap(trace.activities, step, [&](std::int64_t begin, std::int64_t end) { add_time(by_name, "gaps", begin, end); });
  }
  for (const TracedActivity& a : trace.activities)
    if (within(a, trace)) add_time(by_name, shown_name(a), a.begin, a.end);
  if (!trace.gpu) {
    for (const TracedSpan& p : trace.parts) add_time(by_name, p.name, p.begin, p.end);
    for (const TracedExchange& e : trace.exchanges) add_time(by_name, kind_of(e), e.begin, e.end);
  }
  std::vector<TraceRow> rows;
  for (auto& [name, row] : by_name) row.share = total > 0 ? row.seconds / total : 0, rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string trace_table(const std::vector<TraceRow>& rows, std::size_t most) {
  constexpr std::size_t widest = 84;
  TextTable table{{"work", "ms", "share", "count"}};
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const TraceRow& row = rows[i];
    const std::string name = row.name.size() > widest ? row.name.substr(0, widest) + ".." : row.name;
    table.push_back({name, fixed(row.seconds * 1e3, 2), fixed(row.share * 100, 1) + "%", std::to_string(row.count)});
  }
  return aligned(table);
}

std::string trace_events(const StepTrace& trace, const TracePlace& place) {
  Picture picture(trace, place);
  const int steps = picture.line("steps");
  for (const TracedSpan& step : trace.steps) picture.event(steps, step.name, "step", step.begin, step.end);
  if (!trace.parts.empty()) {
    const int parts = picture.line(trace.gpu ? "parts of steps" : "computation");
    for (const TracedSpan& part : trace.parts) picture.event(parts, part.name, "part", part.begin, part.end);
  }
  if (!trace.exchanges.empty()) {
    const int exchanges = picture.line("communication");
    for (const TracedExchange& e : trace.exchanges)
      picture.event(exchanges, e.name, "exchange", e.begin, e.end, {{"sent_bytes", e.sent_bytes}});
  }
  if (!trace.pieces.empty()) {
    const int pieces = picture.line("passes in turn");
    for (const TracedSpan& piece : trace.pieces) picture.event(pieces, piece.name, "piece", piece.begin, piece.end);
  }
  // Two may be under way at once, begun and ended in one order.
  for (std::size_t i = 0; i < std::min<std::size_t>(2, trace.under_way.size()); ++i) {
    const int line = picture.line(format("under way {}", i + 1));
    for (std::size_t e = i; e < trace.under_way.size(); e += 2) {
      const TracedExchange& x = trace.under_way[e];
      picture.event(line, x.name, "exchange", x.begin, x.end, {{"sent_bytes", x.sent_bytes}});
    }
  }
  if (trace.gpu) draw_activities(picture, trace);
  return std::move(picture).text();
}

std::string trace_text(std::span<const std::string> events) {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + joined(events, ",\n") + "]}\n";
}

}  // namespace octet::telemetry
