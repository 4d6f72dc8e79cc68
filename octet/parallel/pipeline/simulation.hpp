#pragma once

#include "octet/parallel/pipeline/schedule.hpp"

namespace octet::parallel {

/// Whether a send returns at once, or waits until its receive begins.
enum class Sends : std::uint8_t { buffered, blocking };

/// An executed action: its time on its stage.
struct TimedAction {
  PipelineAction action;
  double start = 0, end = 0;
};

struct PipelineTimes {
  std::vector<std::vector<TimedAction>> stages;
  double seconds = 0;  // from the first start to the last end
  bool ended = true;   // false: every stage waits for another, a deadlock; `stages` has the actions until then
};

/// Executes a schedule. An action begins when the one before it on its stage has ended. A receive ends when its send was reached.
PipelineTimes simulate(const PipelineShape&, const std::vector<StageActions>&, const PipelineCosts&, Sends);

}  // namespace octet::parallel
