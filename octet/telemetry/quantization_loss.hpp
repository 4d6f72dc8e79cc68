#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"

namespace octet::telemetry {

/// octet::rounding_sqnr() of a format by its name, "e4m3"; NaN for another one.
double rounding_sqnr(const std::string& format);
/// Of each quantizer: decibels of its SQNR below that of rounding alone, so that formats compare. NaN where one of both is not known.
std::vector<float> below_rounding(const HealthEvent&, std::span<const QuantizerFacts>);

}  // namespace octet::telemetry
