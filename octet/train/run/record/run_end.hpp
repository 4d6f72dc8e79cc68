#pragma once

#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/run/record/progress.hpp"

namespace octet::train {

/// How a run ended.
struct RunEnd {
  telemetry::RunState state = telemetry::RunState::running;
  std::string not_finite{};        // "the weights of ... are": why it diverged
  std::string recovery_stopped{};  // the reason of recovery, which ended it
  bool all_steps = false;
  double seconds = 0;
  double average_loss = NAN;
};

/// The last line of its record.
telemetry::EndEvent end_event(const RunEnd&, const Progress&);

/// The error of a run that diverged: the reason, where it is shown, and the next action.
std::string divergence_text(const RunEnd&, const Progress&, const telemetry::RunFacts& run, const std::string& folder);

}  // namespace octet::train
