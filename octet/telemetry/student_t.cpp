#include "octet/telemetry/student_t.hpp"

#include <cmath>

#include "octet/base/check.hpp"

namespace octet::telemetry {
namespace {

/// The continued fraction of I_x(a, b), by Lentz's method as modified by Thompson and Barnett 1986. Converges in O(sqrt(max(a, b)))
/// steps for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300, enough = 1e-15;
  constexpr int most_steps = 100000;
  const auto nonzero = [](double v) { return std::fabs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < most_steps; ++m) {
    for (const double term :
         {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))})
      d = 1 / nonzero(1 + term * d), c = nonzero(1 + term / c), value *= c * d;
    if (std::fabs(c * d - 1) < enough) break;
  }
  return value;
}

/// I_x(a, b), given x and 1 - x, so that neither loses digits.
double incomplete_beta(double a, double b, double x, double complement) {
  if (x <= 0) return 0;
  if (complement <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(complement));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, complement) / b;
}

}  // namespace

double student_t_tail(double t, int freedom) {
  check(freedom >= 1, "student_t_tail: wants at least 1 degree of freedom, got {}", freedom);
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  const double n = freedom, square = t * t;
  const double half = incomplete_beta(n / 2, 0.5, n / (n + square), square / (n + square)) / 2;
  return t >= 0 ? half : 1 - half;
}

double student_t_quantile(double tail, int freedom) {
  check(tail > 0 && tail <= 0.5, "student_t_quantile: wants a tail in (0, 1/2], got {}", tail);
  double low = 0, high = 1;
  while (student_t_tail(high, freedom) > tail) low = high, high *= 2;
  for (double middle = low; low < high;) {
    middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (student_t_tail(middle, freedom) > tail ? low : high) = middle;
  }
  return tail == 0.5 ? 0 : high;
}

}  // namespace octet::telemetry
