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
std::unique_ptr<Family> gpu_rules(const AlertsConfig&, const Subject&);
std::unique_ptr<Family> machine_rules(const AlertsConfig&, const Subject&);

}  // namespace octet::health
