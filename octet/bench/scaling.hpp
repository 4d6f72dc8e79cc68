#pragma once

#include "octet/bench/rank_cases.hpp"
#include "octet/json/value.hpp"

namespace octet::bench {

/// Which work grows with the ranks. strong: none, the micro-batches of a step are divided. weak: each rank has as many as at the largest
/// number of ranks, so the step grows.
enum class Scaling : std::uint8_t { strong, weak };
constexpr std::string_view name(Scaling s) { return s == Scaling::strong ? "strong" : "weak"; }

struct ScalingRow {
  Scaling kind = Scaling::strong;
  std::string recipe{};
  bool overlaps = false;  // exchanges run beside the computation: on GPUs, by comm.overlap
  StepsOnRanks steps{};
  double gain = 1;  // tokens per second over those of one rank, of the same kind and recipe

  double efficiency() const { return gain / steps.ranks; }
};

/// The gain of overlap on some ranks.
struct OverlapGain {
  Scaling kind = Scaling::strong;
  std::string recipe{};
  int ranks = 1;
  double exposed = 0, exposed_without = 0;  // seconds of communication in a step

  /// The share of the communication that overlap hides.
  double share() const { return 1 - exposed / exposed_without; }
};

struct ScalingResult {
  StepFacts facts;
  std::vector<ScalingRow> rows;
  std::vector<OverlapGain> gains() const;
};

/// The numbers of ranks that are measured: powers of two, and the last one.
std::vector<int> counts_up_to(int ranks);
/// Micro-batches of a strong step that every one of these numbers of ranks divides.
std::int64_t fewest_micro_batches(int ranks);

/// Steps on 1 to all ranks. train.accumulate of the plan: micro-batches of a strong step on all ranks together; 0: fewest_micro_batches().
/// Throws ConfigError if the micro-batches of a step cannot be divided, and as measure_cases().
ScalingResult measure_scaling(const StepBenchOptions&);

std::string table_text(const ScalingResult&);
json::Value to_json(const ScalingResult&);
/// A picture of tokens per second over those of one rank, and of the parts of each step, as an SVG file.
std::string svg_text(const ScalingResult&);

}  // namespace octet::bench
