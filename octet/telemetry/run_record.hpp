#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"

namespace octet::telemetry {

/// A run, read from its folder. Every series is in order of steps, each step once: after a resume, and after
/// recovery went back, the later line of a step counts. Lists of incidents, alerts and recoveries have all of them.
struct RunRecord {
  RunFacts facts;
  std::vector<StepEvent> steps{};
  std::vector<ScalesEvent> scales{};
  std::vector<HealthEvent> health{};
  std::vector<RanksEvent> ranks{};
  std::vector<SharedScalesEvent> shared_scales{};
  std::vector<ExpertsEvent> experts{};
  std::vector<EvalEvent> evals{};
  std::vector<SampleEvent> samples{};
  std::vector<MachineEvent> machine{};
  std::vector<GpusEvent> gpus{};
  std::vector<IncidentEvent> incidents{};
  std::vector<AlertEvent> alerts{};
  std::vector<RecoveryEvent> recoveries{};
  std::int64_t incidents_left_out = 0, alerts_left_out = 0, recoveries_left_out = 0;  // beyond the limit
  std::optional<EndEvent> end{};                                                      // none in a run that was killed or is in progress
  bool torn = false;                                                                  // the last line had no newline and was dropped
};

/// Limits on the memory of a run.
struct ReadLimits {
  std::int64_t file_bytes = std::int64_t(16) << 30;
  std::size_t line_bytes = std::size_t(1) << 20;
  std::size_t steps = std::size_t(1) << 18;      // of a longer series every second, fourth, ... event is kept
  std::size_t snapshots = std::size_t(1) << 11;  // the same for all other measurements
  std::size_t incidents = 10000;                 // as many alerts, and recoveries
  std::size_t samples = 64;                      // of text, the same as snapshots
};

/// Reads `folder`/run.json and `folder`/metrics.jsonl; the latter may be missing (a run that has not started) and may end in a torn line.
/// Throws IoError, or DataError naming file, line and field for any other deviation from docs/run-folder.md.
RunRecord read_run(const std::string& folder, const ReadLimits& = {});

}  // namespace octet::telemetry
