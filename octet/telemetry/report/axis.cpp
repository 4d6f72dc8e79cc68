#include "octet/telemetry/report/axis.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/markup.hpp"

namespace octet::telemetry::report {
namespace {

/// The 1, 2 or 5 times a power of ten that is nearest to x, as a factor.
double round_step(double x) {
  const double power = std::pow(10, std::floor(std::log10(x))), m = x / power;
  return power * (m < std::sqrt(2) ? 1 : m < std::sqrt(10) ? 2 : m < std::sqrt(50) ? 5 : 10);
}

std::vector<double> linear_ticks(double low, double high, int wanted) {
  std::vector<double> out;
  if (!(low < high)) return {low};
  const double step = round_step((high - low) / wanted), first = std::ceil(low / step - 1e-9);
  // Counted, not only compared: if low is huge compared with the step, adding a step changes nothing.
  for (int i = 0; i <= 2 * wanted + 2; ++i)
    if (const double x = (first + i) * step; x <= high + step * 1e-9) out.push_back(x);
  return out;
}

/// Every m * 10^n within [low, high], m from `mantissas`.
std::vector<double> decade_ticks(double low, double high, std::span<const double> mantissas) {
  std::vector<double> out;
  if (!(low > 0) || !std::isfinite(high)) return out;
  for (int n = int(std::floor(std::log10(low))); n <= int(std::ceil(std::log10(high))); ++n)
    for (const double m : mantissas)
      if (const double x = m * std::pow(10, n); x >= low * (1 - 1e-9) && x <= high * (1 + 1e-9)) out.push_back(x);
  return out;
}

std::vector<double> log_ticks(double low, double high, int wanted) {
  static constexpr double fine[] = {1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}, middle[] = {1, 1.5, 2, 3, 4, 5, 6, 8},
                          coarse[] = {1, 2, 5}, tens[] = {1};
  for (const auto mantissas : {std::span<const double>(fine), std::span<const double>(middle), std::span<const double>(coarse)})
    if (auto out = decade_ticks(low, high, mantissas); int(out.size()) <= wanted + 2) return out;
  auto out = decade_ticks(low, high, tens);
  const std::size_t every = (out.size() + std::size_t(wanted) - 1) / std::size_t(wanted);
  for (std::size_t i = 0; i * every < out.size(); ++i) out[i] = out[i * every];
  if (every > 1) out.resize((out.size() + every - 1) / every);
  return out;
}

/// 0 and, on either side, 1-2-5 values that keep their distance.
std::vector<double> asinh_ticks(const Axis& axis, int wanted) {
  std::vector<double> out;
  const double apart = 0.8 / wanted, largest = std::max(std::fabs(axis.low), std::fabs(axis.high));
  for (const double sign : {-1.0, 1.0}) {
    double last = 0;
    static constexpr double mantissas[] = {1, 2, 5};
    for (const double size : decade_ticks(axis.knee / 10, largest, mantissas)) {
      const double x = sign * size;
      if (x < axis.low || x > axis.high || !(std::fabs(axis.place(x) - axis.place(last)) >= apart)) continue;
      out.push_back(last = x);
    }
  }
  if (axis.low <= 0 && axis.high >= 0) out.push_back(0);
  std::sort(out.begin(), out.end());
  return out;
}

double bent(const Axis& axis, double x) {
  switch (axis.kind) {
    case Axis::Kind::linear: return x;
    case Axis::Kind::log: return std::log(std::max(x, axis.low * 1e-6));
    case Axis::Kind::asinh: return std::asinh(x / axis.knee);
  }
  return x;
}

}  // namespace

double Axis::place(double x) const {
  const double from = bent(*this, low);
  return (bent(*this, x) - from) / (bent(*this, high) - from);
}

std::vector<double> Axis::ticks(int wanted) const {
  switch (kind) {
    case Kind::linear: return linear_ticks(low, high, wanted);
    case Kind::log: return log_ticks(low, high, wanted);
    case Kind::asinh: return asinh_ticks(*this, wanted);
  }
  return {};
}

Axis linear_axis(double low, double high) {
  if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  // A margin that survives rounding even if all values are nearly one large number; of one value, so wide that ticks are round numbers.
  const double margin = std::max({(high > low ? high - low : std::fabs(high)) / 20, std::fabs(high) * 1e-6, 1e-12});
  return {.low = low - margin, .high = high + margin};
}

std::string tick_text(double x) {
  const double size = std::fabs(x);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return to_text(x);
  if (size >= 1000) return grouped(std::llround(x));
  return coordinate(x, 5);
}

}  // namespace octet::telemetry::report
