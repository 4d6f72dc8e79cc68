#pragma once

#include <memory>

#include "octet/health/family.hpp"

namespace octet::health {

/// The families of rules, each in the file of its name.
std::unique_ptr<Family> nonfinite_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> loss_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> loss_level_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> batch_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> norm_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> scale_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> frozen_scale_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> maxima_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> range_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> shared_scale_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> router_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> machine_rules(const AlertsConfig&, const Subject&);

/// SQNR in dB of rounding values that are spread evenly over binades to m mantissa bits: ulp^2 / 12 of noise and 3 / (2 ln 2) of signal in
/// [1, 2), so 10 log10(12 * 3 / (2 ln 2) * 4^m). NaN for a format without an entry.
double rounding_sqnr(const std::string& format);

}  // namespace octet::health
