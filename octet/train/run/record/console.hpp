#pragma once

#include <chrono>
#include <optional>

#include "octet/telemetry/step_line.hpp"

namespace octet::train {

/// The display of a run while it trains: on a terminal a bar that is redrawn in its place, elsewhere (a file, a pipe, a terminal
/// that says it is dumb) whole lines without escape codes, at growing distances. The first step and the last one are always shown.
class Console {
 public:
  enum class Kind { automatic, lines, quiet };
  explicit Console(Kind);
  ~Console();

  void step(const telemetry::StepEvent&, const telemetry::LineContext&);
  /// A line of its own: an evaluation, an incident.
  void note(const std::string& text);
  /// Shows the last step and leaves the bar's line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    telemetry::StepEvent event;
    telemetry::LineContext context;
  };
  void show(const Step&);

  bool terminal_, quiet_;
  Clock::time_point began_ = Clock::now(), shown_{};
  std::optional<Step> last_;  // that is not shown yet
};

/// Between two lines of a log, so long after the first one: a fiftieth of that, so that a run of minutes prints as many as one of days;
/// from 5 seconds to 5 minutes.
std::chrono::duration<double> line_distance(std::chrono::duration<double> elapsed);

}  // namespace octet::train
