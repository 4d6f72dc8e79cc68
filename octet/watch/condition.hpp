#pragma once

#include <cstdint>
#include <string>

#include "octet/base/lock_state.hpp"
#include "octet/telemetry/run_facts.hpp"

namespace octet::watch {

/// The state of a run as its folder shows it.
enum class Condition : std::uint8_t {
  running,   // a process holds the folder and writes events
  stalled,   // a process holds the folder, but no event came for long
  silent,    // no event came for long, and this machine does not see whether a process holds the folder
  crashed,   // no process holds the folder, and the run did not end by itself
  finished,  // as run.json says
  stopped,
  diverged,
};
std::string to_text(Condition);

/// The facts that tell them apart.
struct Signs {
  telemetry::RunState told = telemetry::RunState::running;  // in run.json
  LockState lock = LockState::missing;
  double idle = 0;          // seconds since the last event was written
  double step_seconds = 0;  // of the last step; 0 before it
};
/// A run is quiet after max(60 s, 10 steps) without an event.
Condition condition_of(const Signs&);

}  // namespace octet::watch
