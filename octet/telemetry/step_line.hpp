#pragma once

#include <cstdint>
#include <string>

#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// Facts of a step's line that are not in the event.
struct LineContext {
  std::int64_t steps = 0;    // of the whole run; 0 where it is not known before the end
  double eta_seconds = -1;   // until the end; negative where unknown
  double fraction_done = 0;  // of the run, for the bar, in [0, 1]
};

/// step   120/500  loss 2.3456 (+0.3z)  grad 0.812 (-0.1z)  lr 3.00e-04  3,412 tok/s  61% of limit  eta 1m52s
std::string format_step_line(const StepEvent&, const LineContext&);

/// The same for one terminal line of at most `columns` characters, behind a bar. If that is too narrow, the bar shrinks, then fields are
/// dropped, the loss and the remaining time last. No escape codes: the caller returns the cursor and clears the line.
std::string format_progress_line(const StepEvent&, const LineContext&, int columns);

/// all steps done: 150 steps, train loss 2.8432, eval loss 2.9650, 1,823 tok/s, 0 skipped
/// Figures that the run does not have are left out: the loss of no step, that of no evaluation, the speed of a single step.
std::string format_end_line(const EndEvent&);

/// "52s", "1m52s", "2h05m", "3d04h".
std::string duration_text(double seconds);

}  // namespace octet::telemetry
