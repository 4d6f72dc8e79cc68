#pragma once

#include "octet/json/fields.hpp"
#include "octet/telemetry/memory_use.hpp"
#include "octet/telemetry/run_facts.hpp"

// Parts that run.json and compare.json share.

namespace octet::telemetry {

/// {"categories": {name: bytes, ...}, "peak": bytes}
json::Value memory_json(const MemoryUse&);
MemoryUse memory_use(const json::Fields&);

/// Threads, or seeds, that a file may state at most: far above any machine, and within int.
inline constexpr std::int64_t most_stated = 1 << 20;

/// The remedy for a file of a run folder that cannot be read.
inline constexpr const char* file_remedy = "restore the file from a copy, or leave this run out";

/// The state in the text field `name`.
RunState run_state(const json::Fields&, std::string_view name);

}  // namespace octet::telemetry
