#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/comparison.hpp"

namespace octet::telemetry::report {

/// Runs that are drawn as one: the seeds of an arm or of a twin in a comparison, otherwise a single run. Never empty.
struct Group {
  std::string name;
  int style = 0;
  std::vector<const RunRecord*> runs{};

  const RunRecord& first() const { return *runs.front(); }
};

/// The subject of a report. Refers to its runs and comparison.
struct Study {
  const Comparison* comparison = nullptr;  // null: separate runs, without a baseline
  std::vector<Group> groups{};             // the baseline first
  std::vector<Group> twins{};              // of the baseline: measured and drawn as a band only

  std::string watch_address{};  // to which incidents link; "": none

  const Group* baseline() const { return comparison && !groups.empty() && groups[0].name == comparison->baseline ? &groups[0] : nullptr; }
  /// The largest number of runs in a group.
  std::size_t seeds() const;
};

/// A fact of every group: once where all have the same, otherwise "a, b: one; c: another", groups by name in their order.
std::string facts_of_all(const Study&, const std::function<std::string(const Group&)>& fact);
/// "Loss", or where the report has one run alone, "Loss: its name".
std::string titled(const Study&, const std::string& title);

Study study_of(std::span<const RunRecord> runs, const Comparison* comparison);

}  // namespace octet::telemetry::report
