#pragma once

#include <chrono>

#include "octet/telemetry/step_line.hpp"

namespace octet::train {

/// What a person sees of a run while it trains: a bar that is redrawn on a terminal, lines at growing distances otherwise.
class Console {
 public:
  enum class Kind { automatic, lines, quiet };
  explicit Console(Kind);
  ~Console();

  void step(const StepEvent&, const LineContext&);
  /// A line of its own: an evaluation, an incident.
  void note(const std::string& text);
  /// Leaves the bar's line.
  void finish();

 private:
  bool terminal_, quiet_, bar_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace octet::train
