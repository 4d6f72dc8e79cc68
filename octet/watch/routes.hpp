#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/watch/query.hpp"
#include "octet/watch/runs.hpp"

namespace octet::watch {

/// The content security policy of an answer.
enum class Policy : std::uint8_t {
  page,    // scripts and styles of this server
  report,  // a file of a run: its own styles, no script, nothing that is loaded, and no access to this server's data
};

/// The answer to a request. The bytes are shared: text compiled into the program, or made for this answer.
struct Answer {
  int status = 200;
  std::string_view type{};
  std::shared_ptr<const std::string> made{};
  std::string_view bytes{};  // of `made`, or of a text that lives as long as the program
  Policy policy = Policy::page;
};

/// Kinds of routes. No route opens a file that the request names.
enum class RouteKind : std::uint8_t {
  page,     // the page and its parts, which have no data of runs
  data,     // JSON, of all runs or of one
  report,   // the report of one run, a file of its folder
  events,   // server-sent events of one run
  metrics,  // text for Prometheus
};

/// A route, and the number of the run that the path has.
struct Route {
  RouteKind kind = RouteKind::page;
  std::size_t index = 0;  // in the table of its kind
  std::optional<std::size_t> run{};
};

/// The route of a path; none for any other path.
std::optional<Route> route_of(const std::string& path);
/// The paths of all routes, with run 0: for tests that try each of them.
std::vector<std::string> all_routes();

/// The answer of a route other than `events`. An Octet error becomes an answer of status 400, 404 or 500 with its text.
Answer answer_of(const Route&, const Target&, Runs&);
/// An answer of this text.
Answer text_answer(int status, std::string_view text);

}  // namespace octet::watch
