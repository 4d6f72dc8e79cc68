#pragma once

#include "octet/bench/expert_loads.hpp"
#include "octet/bench/timing.hpp"
#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/telemetry/trace_file.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::bench {

/// Seconds of the steps of one rank, and of two parts of them. On a GPU the parts are those of other, traced steps.
struct RankSamples {
  std::vector<double> seconds{};
  std::vector<double> communication{};  // exposed: this rank waits for an exchange and computes nothing
  std::vector<double> update{};         // AdamW, without its exchanges
  double peak_bytes = 0;                // of all memory of the rank
  double sent_bytes = 0;                // in a step
  double fullest_load = 0;              // ExpertLoads::fullest()
};

/// One rank's share of a step: medians, in seconds.
struct RankTimes {
  double seconds = 0, communication = 0, update = 0, peak_bytes = 0, sent_bytes = 0;

  /// Forward, backward, codes of weights: all time besides exposed communication and update.
  double compute() const { return seconds - communication - update; }
};

/// Steps of several ranks together.
struct StepsOnRanks {
  int ranks = 1;
  double tokens = 0;              // of a step, on all ranks
  double fullest_load = 0;        // ExpertLoads::fullest(), the largest of all ranks
  Timing seconds;                 // of the slowest rank in each step
  std::vector<RankTimes> each{};  // by rank

  double rate() const { return tokens / seconds.median; }
  /// The mean over ranks; peak_bytes: the largest.
  RankTimes mean() const;
};

/// The configuration and ranks of a measurement.
struct RankWork {
  const train::RunConfig& config;  // of these ranks, all of its mesh
  comm::Communicator& ranks;
  Device device = Device::cpu;
  int ranks_here = 1;                   // of these on this machine
  comm::Workspace workspace = nullptr;  // of their backend
  ExpertLoads loads = ExpertLoads();    // for which `config` is configured
};

/// Trains on random tokens, on all ranks: steps to warm up, then `repeats` timed ones, which begin together. Adds their times. Throws
/// DeviceError if free memory is too small.
void time_steps(const RankWork&, int repeats, RankSamples&);
/// The same work traced, after StepTracer::left_out other steps.
telemetry::StepTrace traced_steps(const RankWork&, int steps);
/// On a GPU, whose parts the host does not see: communication and update from traced steps. If they cannot be traced, a warning says why,
/// and both stay unknown.
void time_parts(const RankWork&, RankSamples&);

/// The samples of all ranks. All ranks call it.
StepsOnRanks gathered(const RankWork&, const RankSamples& own);

}  // namespace octet::bench
