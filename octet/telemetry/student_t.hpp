#pragma once

namespace octet::telemetry {

/// P(T > t) of Student's t distribution with `freedom` degrees of freedom:
///   P(T > t) = I_x(freedom / 2, 1 / 2) / 2,   x = freedom / (freedom + t^2),   t >= 0,   and 1 - P(T > -t) below 0
/// I is the regularized incomplete beta function, by its continued fraction. The relative error is below 1e-11.
/// Throws ContractError unless freedom >= 1. Source: Abramowitz and Stegun 1964, 26.5.8 and 26.7.1.
double student_t_tail(double t, int freedom);

/// The t >= 0 with P(T > t) = `tail`. Throws ContractError unless 0 < tail <= 1/2 and freedom >= 1.
double student_t_quantile(double tail, int freedom);

}  // namespace octet::telemetry
