#include "octet/watch/routes.hpp"

#include <array>
#include <charconv>

#include "octet/base/error.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/watch/answers.hpp"
#include "octet/watch/page.hpp"
#include "octet/watch/prometheus.hpp"

namespace octet::watch {
namespace {

constexpr std::string_view json_type = "application/json; charset=utf-8", text_type = "text/plain; charset=utf-8",
                           html_type = "text/html; charset=utf-8";
constexpr std::uint64_t most_report_bytes = std::uint64_t(16) << 20;

using Make = json::Value (*)(Runs&, std::size_t run, const Target&);
struct DataRoute {
  std::string_view path;  // of one run: the part behind its number
  bool of_run;
  Make make;
};

constexpr std::array<DataRoute, 9> data_routes = {{
    {"/api/runs", false, [](Runs& runs, std::size_t, const Target&) { return runs_answer(runs); }},
    {"/api/metrics", false, [](Runs&, std::size_t, const Target&) { return metrics_answer(); }},
    {"/api/compare", false, [](Runs& runs, std::size_t, const Target& t) { return compare_answer(runs, t); }},
    {"summary", true, [](Runs& runs, std::size_t i, const Target&) { return summary_answer(runs.fresh(i)); }},
    {"series", true, [](Runs& runs, std::size_t i, const Target& t) { return series_answer(runs.loaded(i), t); }},
    {"heat", true, [](Runs& runs, std::size_t i, const Target& t) { return heat_answer(runs.loaded(i), t); }},
    {"tensor", true, [](Runs& runs, std::size_t i, const Target& t) { return tensor_answer(runs.loaded(i), t); }},
    {"samples", true, [](Runs& runs, std::size_t i, const Target&) { return samples_answer(runs.loaded(i)); }},
    {"incidents", true, [](Runs& runs, std::size_t i, const Target& t) { return incidents_answer(runs.loaded(i), t); }},
}};

constexpr std::string_view run_prefix = "/api/runs/", events_path = "events", report_path = "report", metrics_path = "/metrics";

Answer made_answer(int status, std::string_view type, std::string text) {
  auto made = std::make_shared<const std::string>(std::move(text));
  const std::string_view bytes = *made;
  return {.status = status, .type = type, .made = std::move(made), .bytes = bytes};
}

Answer error_answer(int status, std::string_view what) {
  const json::Value error = json::Object{{"error", printable(what, most_of_a_message)}};
  return made_answer(status, json_type, error.dump(json::Layout::line, json::Invalid::replace));
}

Answer report_answer(const WatchedRun& run) {
  const std::string path = run.report_path();
  if (path.empty()) return error_answer(404, "this run has no report.html yet: octet report writes one");
  const RegularFile file = RegularFile::open(path, Link::refuse_all);
  if (file.size > most_report_bytes)
    throw DataError(
        format("{}: a report of more than {} is not served: open the file", printable(path), bytes_text(double(most_report_bytes))));
  std::string text;
  file.read(path, 0, std::size_t(file.size), text);
  Answer out = made_answer(200, html_type, std::move(text));
  out.policy = Policy::report;
  return out;
}

int status_of(const Error& e) { return e.code() == ExitCode::usage ? 400 : 500; }

}  // namespace

Answer text_answer(int status, std::string_view text) { return made_answer(status, text_type, std::string(text) + "\n"); }

std::optional<Route> route_of(const std::string& path) {
  for (std::size_t i = 0; i < page_files().size(); ++i)
    if (page_files()[i].path == path) return Route{RouteKind::page, i};
  if (path == metrics_path) return Route{RouteKind::metrics};
  for (std::size_t i = 0; i < data_routes.size(); ++i)
    if (!data_routes[i].of_run && data_routes[i].path == path) return Route{RouteKind::data, i};
  if (!path.starts_with(run_prefix)) return std::nullopt;
  const char *begin = path.data() + run_prefix.size(), *end = path.data() + path.size();
  std::size_t run = 0;
  const auto [stop, error] = std::from_chars(begin, end, run);
  if (error != std::errc() || stop == end || *stop != '/') return std::nullopt;
  const std::string_view rest(stop + 1, std::size_t(end - stop - 1));
  if (rest == events_path) return Route{RouteKind::events, 0, run};
  if (rest == report_path) return Route{RouteKind::report, 0, run};
  for (std::size_t i = 0; i < data_routes.size(); ++i)
    if (data_routes[i].of_run && data_routes[i].path == rest) return Route{RouteKind::data, i, run};
  return std::nullopt;
}

std::vector<std::string> all_routes() {
  std::vector<std::string> paths;
  for (const PageFile& file : page_files()) paths.emplace_back(file.path);
  for (const DataRoute& route : data_routes) paths.push_back(format("{}{}", route.of_run ? "/api/runs/0/" : "", route.path));
  for (const std::string_view of_run : {events_path, report_path}) paths.push_back(format("{}0/{}", run_prefix, of_run));
  paths.emplace_back(metrics_path);
  return paths;
}

Answer answer_of(const Route& route, const Target& target, Runs& runs) {
  if (route.kind == RouteKind::page) {
    const PageFile& file = page_files()[route.index];
    return {.status = 200, .type = file.type, .made = nullptr, .bytes = file.bytes};
  }
  if (route.run && *route.run >= runs.size()) return error_answer(404, format("there are {} runs", runs.size()));
  try {
    if (route.kind == RouteKind::report) return report_answer(runs.at(*route.run));
    if (route.kind == RouteKind::metrics) return made_answer(200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(runs));
    return made_answer(200, json_type,
                       data_routes[route.index].make(runs, route.run.value_or(0), target).dump(json::Layout::line, json::Invalid::replace));
  } catch (const Error& e) {
    return error_answer(status_of(e), e.what());
  }
}

}  // namespace octet::watch
