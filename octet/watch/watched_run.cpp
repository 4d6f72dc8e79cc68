#include "octet/watch/watched_run.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/event_line.hpp"

namespace octet::watch {
namespace {

using namespace telemetry;

constexpr std::size_t glance_bytes = std::size_t(256) << 10;
constexpr std::int64_t large_file = std::int64_t(48) << 20;  // beyond it samples are shown until all events are read
constexpr std::size_t sample_places = 600, sample_bytes = std::size_t(20) << 10;
constexpr std::size_t longest_news = std::size_t(16) << 10;

// None for an event of a later version, and for a line that is not an event, which `problem` then names.
std::optional<Event> event_in(std::string_view line, const std::string& where, std::string& problem) {
  try {
    return parse_known_event(line, where);
  } catch (const DataError& e) {
    problem = e.what();
    return std::nullopt;
  }
}

// The values that the event adds to curves, by their names.
json::Object values_json(const Event& event) {
  json::Object out;
  for (const CurveValue& v : curve_values(event)) out.push_back({v.curve, v.value});
  return out;
}

/// Whether a glance keeps the last event of that kind as one of others.
bool is_other(const Event& e) {
  return std::holds_alternative<MachineEvent>(e) || std::holds_alternative<GpusEvent>(e) || std::holds_alternative<RanksEvent>(e) ||
         std::holds_alternative<SharedScalesEvent>(e) || std::holds_alternative<ExpertsEvent>(e);
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

WatchedRun::WatchedRun(std::string root, const std::string& inner, std::string name)
    : root_(std::move(root)), inner_(inner.empty() ? "" : "/" + inner), folder_(root_ + inner_), name_(std::move(name)), tail_("") {
  find_place();
  unload();
}

// The root may be a link, which may lead elsewhere now; below it no part may be one.
void WatchedRun::find_place() {
  std::error_code reason;
  const std::string real = std::filesystem::canonical(root_, reason).string();
  if (std::string place = (reason ? root_ : real) + inner_; place != place_) place_ = std::move(place), unload();
}

void WatchedRun::refresh() {
  folder_problem_.clear();
  find_place();
  try {
    refresh_facts();
    lock_ = lock_state(place_ + "/.lock");
    refresh_glance();
  } catch (const Error& e) {
    folder_problem_ = e.what();
  }
}

void WatchedRun::refresh_facts() {
  struct stat facts {};
  const std::string path = place_ + "/run.json";
  if (::stat(path.c_str(), &facts) != 0) facts.st_size = -1;
  const Seen seen{facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  if (has_facts_ && seen == facts_seen_) return;
  const std::size_t tensors = facts_.quantizers.size();
  facts_ = read_run_facts(path, Link::refuse_all);
  facts_seen_ = seen;
  if (has_facts_ && tensors != facts_.quantizers.size()) unload();
  has_facts_ = true;
}

void WatchedRun::refresh_glance() {
  struct stat facts {};
  if (::stat(metrics_path().c_str(), &facts) != 0) {
    glance_ = {}, metrics_seen_ = {};
    return;
  }
  const Seen seen{facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  if (seen == metrics_seen_) return;
  metrics_seen_ = seen;
  Glance last;
  if (seen.size >= glance_.size_of_rare) last.eval = glance_.eval, last.health = glance_.health, last.others = glance_.others;
  sample_lines(
      metrics_path(), 1, glance_bytes,
      [&](std::string_view line, std::int64_t) {
        if (line.find("\"scales\"") < 16) return;  // the largest lines, of which none is needed
        const std::optional<Event> event = event_in(line, printable(metrics_path()), line_problem_);
        if (!event) return;
        if (const auto* step = std::get_if<StepEvent>(&*event)) last.step = *step, last.end.reset();
        if (const auto* eval = std::get_if<EvalEvent>(&*event)) last.eval = *eval;
        if (const auto* health = std::get_if<HealthEvent>(&*event)) last.health = *health;
        if (is_other(*event)) last.others.insert_or_assign(event->index(), *event);
        if (const auto* end = std::get_if<EndEvent>(&*event)) last.end = *end;
      },
      Link::refuse_all);
  last.size_of_rare = seen.size;
  glance_ = std::move(last);
}

double WatchedRun::idle_seconds() const {
  const Seen& last = metrics_seen_.size >= 0 ? metrics_seen_ : facts_seen_;
  return std::max(0.0, now() - (double(last.seconds) + 1e-9 * double(last.nanoseconds)));
}

Condition WatchedRun::condition() const {
  return condition_of({.told = facts_.state,
                       .lock = lock_,
                       .idle = idle_seconds(),
                       .step_seconds = glance_.step && std::isfinite(glance_.step->seconds) ? glance_.step->seconds : 0});
}

std::string WatchedRun::report_path() const {
  const std::string own = place_ + "/report.html", comparison = folder_of(place_);
  if (exists(own)) return own;
  if (exists(comparison + "/compare.json") && exists(comparison + "/report.html")) return comparison + "/report.html";
  return "";
}

double WatchedRun::share_read() const {
  if (!loaded()) return 0;
  return caught_up_ || tail_.size() == 0 ? 1 : double(tail_.offset()) / double(tail_.size());
}

void WatchedRun::unload() {
  exact_ = RunHistory(0), tail_ = telemetry::RunTail(metrics_path(), Link::refuse_all);
  loaded_ = caught_up_ = false, line_problem_.clear();
  end_preview();
}

void WatchedRun::end_preview() { preview_ = RunHistory(0), previewing_ = false; }

void WatchedRun::begin() {
  exact_ = RunHistory(facts_.quantizers.size()), loaded_ = true;
  if (!exists(metrics_path()) || std::int64_t(RegularFile::open(metrics_path(), Link::refuse_all).size) < large_file) return;
  preview_ = RunHistory(facts_.quantizers.size()), previewing_ = true;
  sample_lines(
      metrics_path(), sample_places, sample_bytes, [&](std::string_view line, std::int64_t at) { take(preview_, line, at); },
      Link::refuse_all);
}

bool WatchedRun::read(std::int64_t most_bytes) {
  if (!has_facts_) refresh();
  if (!has_facts_) return false;
  try {
    if (!loaded()) {
      begin();
      if (previewing_) return true;
    }
    const RunTail::Progress progress =
        tail_.poll([&](std::string_view line, std::int64_t offset) { take(exact_, line, offset); }, most_bytes);
    if (progress.skipped > 0)
      line_problem_ = format("{}: {} lines longer than 1 MiB were passed over", printable(metrics_path()), progress.skipped);
    if (progress.restarted) {
      exact_.clear(), caught_up_ = false;
      end_preview();
      return true;
    }
    if (progress.at_end && !caught_up_) {
      caught_up_ = true;
      end_preview();
      news_.add({"reload", "{}"});
    }
    return !progress.at_end;
  } catch (const Error& e) {
    line_problem_ = e.what();
    return false;
  }
}

void WatchedRun::take(RunHistory& into, std::string_view line, std::int64_t offset) {
  const std::string where = format("{}: byte {}", printable(metrics_path()), offset);
  std::optional<Event> event = event_in(line, where, line_problem_);
  if (!event) return;
  if (caught_up_) tell(line, *event);
  try {
    into.take(std::move(*event), offset);
  } catch (const DataError& e) {
    line_problem_ = format("{}: {}", where, e.what());
  }
}

void WatchedRun::tell(std::string_view line, const Event& event) {
  if (std::holds_alternative<ScalesEvent>(event)) return;
  if (json::Object values = values_json(event); !values.empty()) {
    const std::int64_t step = std::visit([](const auto& e) { return e.step; }, event);
    const json::Value told = json::Object{{"step", step}, {"values", std::move(values)}};
    news_.add({"curves", told.dump(json::Layout::line, json::Invalid::replace)});
  }
  if (const auto* health = std::get_if<HealthEvent>(&event)) {
    news_.add({"health", format("{\"step\":{}}", health->step)});
  } else if (line.size() <= longest_news) {
    news_.add({"event", std::string(line)});
  } else {
    news_.add({"reload", "{}"});
  }
}

}  // namespace octet::watch
