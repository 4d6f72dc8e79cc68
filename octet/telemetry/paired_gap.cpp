#include "octet/telemetry/paired_gap.hpp"

#include <cmath>

#include "octet/base/check.hpp"
#include "octet/telemetry/student_t.hpp"

namespace octet::telemetry {

PairedGap paired_gap(std::span<const double> differences) {
  PairedGap out;
  double sum = 0, squares = 0;
  for (const double d : differences)
    if (std::isfinite(d)) sum += d, ++out.pairs;
  out.mean = out.pairs > 0 ? sum / out.pairs : NAN;
  for (const double d : differences)
    if (std::isfinite(d)) squares += (d - out.mean) * (d - out.mean);
  out.deviation = out.pairs > 1 ? std::sqrt(squares / (out.pairs - 1)) : NAN;
  return out;
}

double half_width(const PairedGap& gap, double confidence) {
  check(confidence > 0 && confidence < 1, "half_width: wants a confidence in (0, 1), got {}", confidence);
  if (gap.pairs < 2) return NAN;
  return student_t_quantile((1 - confidence) / 2, gap.pairs - 1) * gap.deviation / std::sqrt(gap.pairs);
}

double p_value(const PairedGap& gap, double value) {
  if (gap.pairs < 2) return 1;
  const double away = std::fabs(gap.mean - value);
  if (gap.deviation == 0) return away == 0 ? 1 : 0;
  return 2 * student_t_tail(away / (gap.deviation / std::sqrt(gap.pairs)), gap.pairs - 1);
}

}  // namespace octet::telemetry
