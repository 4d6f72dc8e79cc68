#pragma once

#include "octet/bench/bench.hpp"
#include "octet/json/value.hpp"

namespace octet::bench {

/// The result as a table for people: a line a row, and where the floor of each step comes from.
std::string table_text(const Result&);
/// The same in base units: seconds, bytes, operations, tokens. docs/benchmarks.md lists the members.
json::Value to_json(const Result&);

}  // namespace octet::bench
