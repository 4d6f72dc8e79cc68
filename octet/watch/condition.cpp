#include "octet/watch/condition.hpp"

#include <algorithm>

namespace octet::watch {

std::string to_text(Condition c) {
  switch (c) {
    case Condition::running: return "running";
    case Condition::stalled: return "stalled";
    case Condition::silent: return "silent";
    case Condition::crashed: return "crashed";
    case Condition::finished: return "finished";
    case Condition::stopped: return "stopped";
    default: return "diverged";
  }
}

Condition condition_of(const Signs& s) {
  const bool quiet = s.idle > std::max(60.0, 10 * s.step_seconds);
  if (s.lock == LockState::held) return quiet ? Condition::stalled : Condition::running;
  switch (s.told) {
    case telemetry::RunState::finished: return Condition::finished;
    case telemetry::RunState::stopped: return Condition::stopped;
    case telemetry::RunState::diverged: return Condition::diverged;
    default: break;
  }
  if (s.lock == LockState::free) return Condition::crashed;
  return quiet ? Condition::silent : Condition::running;
}

}  // namespace octet::watch
