#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "octet/telemetry/run_facts.hpp"
#include "octet/telemetry/run_tail.hpp"
#include "octet/watch/condition.hpp"
#include "octet/watch/news.hpp"
#include "octet/watch/run_history.hpp"

namespace octet::watch {

/// The last events of a run.
struct Glance {
  std::optional<telemetry::StepEvent> step{};
  std::optional<telemetry::EvalEvent> eval{};
  std::optional<telemetry::HealthEvent> health{};
  std::map<std::size_t, telemetry::Event> others{};  // by Event::index(): those of GPUs, ranks, experts and of the machine
  std::optional<telemetry::EndEvent> end{};
  std::int64_t size_of_rare = 0;  // of the file, when events that are not of every step were last looked for
};

/// A run as its folder shows it, without any effect on the process that writes it. Defects of the files are kept as problem(), not thrown:
/// a file may be half copied.
class WatchedRun {
 public:
  /// The run in the folder `inner`, a path, of `root`, or in `root` itself where that is "". Only `root` may be or pass a symbolic link.
  WatchedRun(std::string root, const std::string& inner, std::string name);

  const std::string& folder() const { return folder_; }
  /// The path below the folder that was named on the command line.
  const std::string& name() const { return name_; }

  /// Reads run.json, the lock and the end of metrics.jsonl where they changed. Where run.json is now that of a run with other quantizers,
  /// the history is dropped and read again: refresh before you read.
  void refresh();
  const telemetry::RunFacts& facts() const { return facts_; }
  const Glance& glance() const { return glance_; }
  Condition condition() const;
  double idle_seconds() const;
  /// The last defect of a file, or "".
  const std::string& problem() const { return folder_problem_.empty() ? line_problem_ : folder_problem_; }

  /// Whether the history is loaded: it begins to be with the first read(), and ends with unload().
  bool loaded() const { return loaded_; }
  void unload();
  /// Reads about `most_bytes` of new events into the history; returns whether more wait. The first call on a large file reads samples of
  /// it, which history() shows until every event was read.
  bool read(std::int64_t most_bytes);
  /// It is empty before a read() and after unload(). The reference stays valid as long as this run; each call may empty the history.
  const RunHistory& history() const { return previewing_ ? preview_ : exact_; }
  bool complete() const { return caught_up_; }
  /// The part of metrics.jsonl that was read, from 0 to 1.
  double share_read() const;
  /// The report in the run's folder, or that of the comparison it belongs to; "" where there is none.
  std::string report_path() const;
  const News& news() const { return news_; }
  std::string metrics_path() const { return place_ + "/metrics.jsonl"; }

 private:
  void find_place();
  void refresh_facts();
  void refresh_glance();
  void begin();
  void end_preview();
  void take(RunHistory& into, std::string_view line, std::int64_t offset);
  void tell(std::string_view line, const telemetry::Event& event);

  std::string root_, inner_, folder_, name_, folder_problem_, line_problem_;
  std::string place_;  // the folder's real path, as it should be
  telemetry::RunFacts facts_;
  bool has_facts_ = false, caught_up_ = false;
  struct Seen {  // of a file
    std::int64_t size = -1, seconds = 0, nanoseconds = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  } facts_seen_, metrics_seen_;
  Glance glance_;
  LockState lock_ = LockState::missing;
  telemetry::RunTail tail_;
  bool loaded_ = false, previewing_ = false;
  RunHistory exact_{0}, preview_{0};  // emptied in place: what refers to them stays valid
  News news_;
};

}  // namespace octet::watch
