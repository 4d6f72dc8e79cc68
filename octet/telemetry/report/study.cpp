#include "octet/telemetry/report/study.hpp"

#include <algorithm>

namespace octet::telemetry::report {

std::size_t Study::seeds() const {
  std::size_t most = 0;
  for (const Group& g : groups) most = std::max(most, g.runs.size());
  return most;
}

std::string facts_of_all(const Study& study, const std::function<std::string(const Group&)>& fact) {
  std::vector<std::pair<std::string, std::string>> all;  // a fact and the groups that have it
  for (const Group& g : study.groups) {
    const std::string value = fact(g);
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == value; });
    if (same == all.end()) all.emplace_back(value, g.name);
    else same->second += ", " + g.name;
  }
  if (all.size() == 1) return all[0].first;
  std::string out;
  for (const auto& [value, names] : all) out += (out.empty() ? "" : "; ") + names + ": " + value;
  return out;
}

std::string titled(const Study& study, const std::string& title) {
  return study.groups.size() == 1 ? title + ": " + study.groups[0].name : title;
}

Study study_of(std::span<const RunRecord> runs, const Comparison* comparison) {
  Study study{.comparison = comparison};
  for (const RunRecord& run : runs) {
    std::vector<Group>& groups = comparison && run.facts.twin > 0 ? study.twins : study.groups;
    const std::string name = comparison ? row_name(arm_of(run.facts), run.facts.twin) : run.facts.name;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return comparison && g.name == name; });
    if (group == groups.end()) groups.push_back({.name = name, .runs = {&run}});
    else group->runs.push_back(&run);
  }
  if (comparison)
    std::stable_partition(study.groups.begin(), study.groups.end(), [&](const Group& g) { return g.name == comparison->baseline; });
  // The ink of style 0 is the baseline's; without one the first run may have it too.
  for (std::size_t i = 0; i < study.groups.size(); ++i) study.groups[i].style = int(i) + (comparison && !study.baseline() ? 1 : 0);
  return study;
}

}  // namespace octet::telemetry::report
