#pragma once

#include <string>

#include "octet/telemetry/run_record.hpp"

#include "octet/telemetry/run_facts.hpp"

namespace octet::telemetry::report {

/// "-" where x is not finite.
std::string number_text(double x, int digits);
/// 0.0012 -> "+0.12 %".
std::string signed_percent(double fraction, int digits = 2);
/// 1234.5 -> "1,235"; "-" where it is not finite.
std::string whole_text(double x);
/// 9840640 -> "9.84 M".
std::string scaled_text(double x);

/// "FAMILY SIZE", or the size alone where that begins with the name of its family.
/// The largest learning rate of a run's steps: "0.003", or "–" where it has none.
std::string peak_rate_text(const RunRecord&);

std::string model_name(const ModelFacts&);

}  // namespace octet::telemetry::report
