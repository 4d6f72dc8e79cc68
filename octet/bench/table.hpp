#pragma once

#include "octet/bench/bench.hpp"
#include "octet/json/value.hpp"

namespace octet::bench {

/// The result as a table for display: one line per row, and the parts of each step's floor.
std::string table_text(const Result&);
/// The same in base units: seconds, bytes, operations, tokens. docs/benchmarks.md lists the members.
json::Value to_json(const Result&);

}  // namespace octet::bench
