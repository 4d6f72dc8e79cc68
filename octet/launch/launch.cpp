#include "octet/launch/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/base/text.hpp"
#include "octet/comm/mpi/file_size.hpp"
#include "octet/launch/commands.hpp"
#include "octet/launch/fewer_ranks.hpp"
#include "octet/launch/supervisor.hpp"

namespace octet::launch {
namespace {

constexpr std::size_t most_tail_lines = 10;

void say(const std::string& text) { log::line("octet launch: " + printable(text, most_of_a_message)); }

// The standard error of rank 0, which it has shown.
std::string shown_by(const std::vector<RankEnd>& ends) {
  const auto first = std::find_if(ends.begin(), ends.end(), [](const RankEnd& e) { return e.rank == 0; });
  return first == ends.end() ? "" : first->tail;
}

// The last lines but one, which the sentence about the rank has. Rank 0 has shown its own.
void say_tail(const RankEnd& e) {
  if (e.rank <= 0) return;
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < e.tail.size();) {
    const std::size_t end = std::min(e.tail.find('\n', at), e.tail.size());
    if (end > at) lines.push_back(e.tail.substr(at, end - at));
    at = end + 1;
  }
  if (!lines.empty()) lines.pop_back();
  const std::size_t first = lines.size() > most_tail_lines ? lines.size() - most_tail_lines : 0;
  for (std::size_t i = first; i < lines.size(); ++i) log::line("  | " + printable(lines[i], most_of_a_message));
}

// Failures besides the cause: one line per reason. Ranks that were killed afterwards have none of their own.
void say_others(const std::vector<RankEnd>& ends, const RankEnd& first) {
  std::map<std::string, std::pair<int, RankEnd>> reasons;
  for (const RankEnd& e : ends) {
    if (e.rank == first.rank || !e.failed() || e.signal > 0 || (e.code == first.code && e.tail == first.tail)) continue;
    auto& [count, example] = reasons.try_emplace(format("{} {}", e.code, e.tail), 0, e).first->second;
    ++count;
  }
  for (const auto& [key, reason] : reasons)
    say(sentence(reason.second, shown_by(ends)) + (reason.first > 1 ? format(" ({} more ranks: the same)", reason.first - 1) : ""));
}

std::string starter_of(const LaunchOptions& options) { return options.choice.way == Way::mpi ? options.machine.mpirun : "octet"; }

// Why no rank could tell its end. Another start may succeed: the cause was outside of the ranks.
RankEnd end_without_ranks(const LaunchOptions& options, const std::string& folder, const Ended& ended) {
  const int lost = int(ExitCode::ranks);
  if (ended.folder_lost)
    return {.rank = -1,
            .code = lost,
            .tail = format("the launcher's folder {} was removed while the ranks ran; set TMPDIR to a folder that nothing clears", folder)};
  if (ended.starter_signal > 0)
    return {.rank = -1,
            .signal = ended.starter_signal,
            .tail = format("{} was killed by {}, and the ranks with it", starter_of(options), signal_text(ended.starter_signal))};
  if (ended.started > 0)
    return {.rank = -1,
            .code = lost,
            .tail = format("{} ended with status {} before {} of {} ranks told their ends", starter_of(options), ended.starter_status,
                           ended.silent, told_ranks(options.choice))};
  throw DeviceError(format("{} of {} ranks have not started: {} ended with status {}", ended.silent, told_ranks(options.choice),
                           starter_of(options), ended.starter_status));
}

RankEnd first_end(const LaunchOptions& options, const std::string& folder, const Ended& ended) {
  const auto c = cause(ended.ranks);
  if (ended.silent == 0 || (c && c->failed())) return c.value_or(RankEnd{});
  if (ended.stopped) return {.rank = 0, .code = int(ExitCode::interrupted)};
  return end_without_ranks(options, folder, ended);
}

void say_failures(const std::vector<RankEnd>& ends, const RankEnd& first) {
  say(sentence(first, shown_by(ends)));
  say_tail(first);
  say_others(ends, first);
}

void leave_out(LaunchOptions& options, int rank, const std::string& run) {
  const std::string lost = format("rank {} was lost in two starts in a row", rank);
  const auto fewer = without(options, rank, run);
  if (!fewer) {
    if (run.empty()) return say(lost + ", but no run has begun that fewer ranks could resume");
    return say(format("{}, but no number of ranks from {} to {} can share a step of the run", lost, options.fewest_ranks,
                      options.choice.ranks - 1));
  }
  options = *fewer;
  say(format("{} and is left out: the run continues on {}", lost, counted(options.choice.ranks, "rank")));
}

// The memory that processes of MPI share stays when they are killed, so it is in a folder of the launcher.
std::optional<TemporaryFolder> shared_memory(const LaunchOptions& options) {
  constexpr const char* place = "/dev/shm";
  if (options.choice.way != Way::mpi || ::access(place, W_OK | X_OK) != 0) return {};
  return std::optional<TemporaryFolder>(std::in_place, place);
}

Ended run_once(const LaunchOptions& options, const std::string& folder) {
  const std::optional<TemporaryFolder> memory = shared_memory(options);
  Supervisor supervisor(RankFolder(folder), told_ranks(options.choice), options.grace_seconds);
  const int port = options.choice.way == Way::gpus ? free_port() : 0;
  return supervisor.run(commands(options, folder, port, memory ? memory->path() : ""));
}

std::string left(int restarts) { return restarts == 1 ? "1 restart is left" : format("{} restarts are left", restarts); }

}  // namespace

std::vector<std::string> resumed(std::vector<std::string> words, const std::string& folder) {
  if (words.empty() || words[0] != "train") return words;
  for (auto it = words.begin(); it != words.end();) {
    if (*it != "--resume" && !it->starts_with("--resume=")) {
      ++it;
      continue;
    }
    const bool has_value = *it == "--resume" && it + 1 != words.end() && !(it + 1)->starts_with("-");
    it = words.erase(it, it + (has_value ? 2 : 1));
  }
  words.insert(words.end(), {"--resume", folder});
  return words;
}

int launch(const LaunchOptions& given) {
  LaunchOptions options = given;
  if (options.choice.way == Way::mpi) comm::require_mpi_file_size();
  say(options.choice.words);
  std::optional<int> lost_before;
  std::string run;  // that has begun, in this start or an earlier one
  for (int restarts = options.restarts;; --restarts) {
    const TemporaryFolder folder;
    const Ended ended = run_once(options, folder.path());
    const RankEnd first = first_end(options, folder.path(), ended);
    if (first.failed()) say_failures(ended.ranks, first);
    const std::optional<int> lost = lost_rank(ended.ranks);
    const bool gone = options.fewest_ranks > 0 && lost && lost == lost_before;
    if (!first.failed() || !(gone || may_succeed_again(first)) || ended.stopped || options.restarts == 0) return first.status();
    if (restarts == 0) {
      say("no restart is left");
      return first.status();
    }
    if (!ended.run.empty()) run = ended.run;
    if (!run.empty()) options.words = resumed(options.words, run);
    if (gone) leave_out(options, *lost, run);
    lost_before = gone ? std::nullopt : lost;
    say(format("starting again{}; {} after this", run.empty() || options.words[0] != "train" ? "" : ", resuming " + run,
               left(restarts - 1)));
  }
}

}  // namespace octet::launch
