#pragma once

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <vector>

#include "tests/testing/scratch.hpp"

namespace octet::testing {

/// An alert of a rule that depends on times and on the machine.
inline bool is_timed_alert(const std::string& line) {
  if (!has(line, "\"event\":\"alert\"")) return false;
  for (const char* rule : {"throughput", "slow_rank", "gpu_hot", "gpu_throttled", "memory", "disk", "checkpoint_age"})
    if (has(line, std::string("\"rule\":\"") + rule + "\"")) return true;
  return false;
}

/// The lines of a run folder's metrics.jsonl without the members that differ from run to run: times, speeds, and what memory they needed.
/// Lines about ranks and the machine are nothing else, nor are alerts of rules about them.
inline std::vector<std::string> untimed_events(const std::string& run_folder) {
  constexpr std::array<std::string_view, 6> timed{"\"time\"",        "\"seconds\"",   "\"tokens_per_second\"",
                                                  "\"limit_share\"", "\"data_wait\"", "\"memory\""};
  std::vector<std::string> out;
  std::istringstream lines(bytes_of(run_folder + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    if (has(line, "\"event\":\"ranks\"") || has(line, "\"event\":\"machine\"") || has(line, "\"event\":\"gpus\"") || is_timed_alert(line))
      continue;
    out.emplace_back();
    std::istringstream members(line);
    for (std::string member; std::getline(members, member, ',');)
      if (std::none_of(timed.begin(), timed.end(), [&](std::string_view name) { return has(member, name); })) out.back() += member + ",";
  }
  return out;
}

}  // namespace octet::testing
