#pragma once

#include "octet/bench/rank_cases.hpp"
#include "octet/json/value.hpp"

// Common parts of tables of steps on ranks.

namespace octet::bench {

/// Machine, ranks, model and sizes: the lines above a table.
std::string head_text(const StepFacts&);
/// The same as members of an object.
json::Value to_json(const StepFacts&);

/// "12.3", "-" where it is unknown.
std::string milliseconds(double seconds);
/// "12.1-12.9": the quartiles.
std::string quartiles(const Timing&);

/// ranks, tokens, seconds with quartiles, tokens_per_second, the mean of all ranks and each of them; parts that are unknown are null.
json::Object members_of(const StepsOnRanks&);

}  // namespace octet::bench
