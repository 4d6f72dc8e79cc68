#pragma once

#include "octet/bench/rank_cases.hpp"
#include "octet/json/value.hpp"

namespace octet::bench {

/// One recipe.
struct StepOfRanks {
  std::string recipe;
  StepsOnRanks steps;
};

struct StepsOnRanksResult {
  StepFacts facts;
  std::vector<StepOfRanks> rows;
};

/// `octet bench step` on several ranks: steps on all of them, under each recipe. Throws as measure_cases().
StepsOnRanksResult measure_steps_on_ranks(const StepBenchOptions&);

/// A line per recipe and rank, and one per recipe of all ranks.
std::string table_text(const StepsOnRanksResult&);
json::Value to_json(const StepsOnRanksResult&);

}  // namespace octet::bench
