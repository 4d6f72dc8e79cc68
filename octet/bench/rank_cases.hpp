#pragma once

#include "octet/bench/rank_steps.hpp"
#include "octet/machine/ranks.hpp"

namespace octet::bench {

/// A measurement of steps on the first ranks of those that are there.
struct RankCase {
  train::RunConfig config;            // ranks: how many of them
  ExpertLoads loads = ExpertLoads();  // for which it is configured
  StepsOnRanks steps{};               // the result
};

/// The ranks that measured, for the heads of tables.
struct RankFacts {
  std::string machine, backend, libraries;  // backend: threads, mpi, nccl, or "" for one rank
  int ranks = 1;
  int processors = 1;  // of this machine
  int threads = 1;     // of each rank
  Device device = Device::cpu;
  bool reports = true;  // false on processes other than that of rank 0
  std::string trace{};  // the file of all ranks' timelines of the last case, if it was wanted
};

/// Which ranks measure, and how often.
struct RankBenchOptions {
  std::string device = "auto";
  int ranks = 0;            // 0: those that were started, or 2
  int repeats = 9;          // timed steps of each case
  bool trace = false;       // whether the last case is traced, too
  bool peer_memory = true;  // comm.peer_memory
};

/// Measures steps on the ranks of machine::on_ranks(). `cases` makes the cases from the number of ranks that are there; the last one is on
/// all of them. On a CPU cases take turns, three steps each, so that a slow minute of a shared machine meets all of them. Every rank keeps
/// its threads, also if it is one of few in a case. A process of several GPUs calls machine::choose_own_gpu() before. Throws as
/// machine::on_ranks() and time_steps().
RankFacts measure_cases(const RankBenchOptions&, const std::function<std::vector<RankCase>(int ranks)>& cases,
                        std::vector<RankCase>& results);

/// Options of a measurement of steps on ranks.
struct StepBenchOptions {
  RankBenchOptions ranks{};
  train::RunConfig config{};           // of each rank
  std::vector<std::string> recipes{};  // empty: that of the configuration
  ExpertLoads loads = ExpertLoads();   // octet bench step alone
};

/// The subject of a table of steps.
struct StepFacts {
  RankFacts place{};
  std::string model{};
  std::int64_t tokens = 0, sequence = 0;  // per micro-batch and per sequence
  std::int64_t zero = 0;                  // stage of ZeRO
  int repeats = 0;                        // timed steps of each row
};
StepFacts facts_of(const StepBenchOptions&, RankFacts);
/// The recipes to measure. Throws ConfigError if one is unknown.
std::vector<std::string> recipes_of(const StepBenchOptions&);

}  // namespace octet::bench
