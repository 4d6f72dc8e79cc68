#pragma once

#include <string>
#include <vector>

namespace octet::telemetry::report {

/// Maps values to [0, 1] along one direction of a chart.
struct Axis {
  enum class Kind {
    linear,
    log,    // low must be above 0
    asinh,  // linear within +-knee, logarithmic beyond: for differences of very unlike sizes
  };
  Kind kind = Kind::linear;
  double low = 0, high = 1;
  double knee = 1;  // asinh only

  /// 0 at low, 1 at high; beyond them outside [0, 1].
  double place(double x) const;
  /// Round values within [low, high], about `wanted` of them.
  std::vector<double> ticks(int wanted) const;
};

/// A linear axis over [low, high], a twentieth wider on both sides; never empty.
Axis linear_axis(double low, double high);

/// "0.5", "12,000", "1e-05".
std::string tick_text(double x);

}  // namespace octet::telemetry::report
