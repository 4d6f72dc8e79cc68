#include "octet/telemetry/report/words.hpp"

#include <cmath>
#include <cstdio>

#include "octet/base/text.hpp"

namespace octet::telemetry::report {

std::string number_text(double x, int digits) { return fixed(x, digits, "–"); }

std::string signed_percent(double fraction, int digits) {
  if (!std::isfinite(fraction)) return "–";
  const std::string size = fixed(std::fabs(100 * fraction), digits);
  const bool zero = size.find_first_not_of("0.") == size.npos;
  return (zero ? "" : fraction < 0 ? "−" : "+") + size + " %";
}

std::string whole_text(double x) { return std::fabs(x) < 1e15 ? grouped(std::llround(x)) : std::isfinite(x) ? to_text(x) : "–"; }

std::string scaled_text(double x) {
  const char* units[] = {"", " k", " M", " G", " T", " P"};
  int unit = 0;
  while (std::fabs(x) >= 1000 && unit < 5) x /= 1000, ++unit;
  return number_text(x, unit == 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2) + units[unit];
}

std::string peak_rate_text(const RunRecord& run) {
  double peak = NAN;
  for (const StepEvent& e : run.steps) peak = std::fmax(peak, e.learning_rate);
  if (!std::isfinite(peak)) return "–";
  char text[32];  // steps need not meet the peak exactly
  std::snprintf(text, sizeof text, "%.3g", peak);
  return text;
}

std::string model_name(const ModelFacts& model) {
  return model.size.starts_with(model.family) ? model.size : model.family + " " + model.size;
}

}  // namespace octet::telemetry::report
