#include "octet/train/run/record/run_end.hpp"

#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/run_link.hpp"

namespace octet::train {

using telemetry::RunState;

telemetry::EndEvent end_event(const RunEnd& end, const Progress& at) {
  const char* reason = end.state == RunState::stopped    ? "stopped by a signal"
                       : !end.recovery_stopped.empty()   ? "stopped by recovery"
                       : !end.not_finite.empty()         ? "not finite"
                       : end.state == RunState::diverged ? "too many skipped steps in a row"
                       : end.all_steps                   ? "all steps done"
                                                         : "time is up";
  return {.step = at.step,
          .time = end.seconds,
          .reason = reason,
          .train_loss = at.losses.mean_of_last_part(20),
          .eval_loss = at.eval_loss,
          .tokens_per_second = at.rates.median(),
          .skipped = at.skipped,
          .average_loss = end.average_loss};
}

std::string divergence_text(const RunEnd& end, const Progress& at, const telemetry::RunFacts& run, const std::string& folder) {
  if (!end.recovery_stopped.empty()) {
    const std::string kind = telemetry::kind_of(telemetry::RecoveryEvent{.rung = "stop", .result = "done"});
    return format(
        "run {}: recovery stopped it after step {}: {}; see the incident with octet watch {} at {} or in the page of octet report {}, and "
        "resume from a checkpoint with a lower optim.learning_rate or recipe.keep_bf16",
        run.name, at.step, end.recovery_stopped, printable(folder),
        telemetry::incident_address(telemetry::default_watch_address(), run, at.step, kind), printable(folder));
  }
  if (!end.not_finite.empty())
    return format(
        "run {}: {} not finite after step {}, and the weights are not saved: see the incidents in {}/metrics.jsonl, and try a lower "
        "optim.learning_rate",
        run.name, end.not_finite, at.step, folder);
  return format(
      "run {}: {} steps in a row were skipped because something was not finite, the last one step {}; see the incidents in "
      "{}/metrics.jsonl, and try a lower optim.learning_rate or recipe.name = \"bf16\"",
      run.name, at.skipped_in_a_row, at.step, folder);
}

}  // namespace octet::train
