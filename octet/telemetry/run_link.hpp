#pragma once

#include <string>
#include <string_view>

#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"

namespace octet::telemetry {

/// The page of `octet watch` where it is started without options.
inline constexpr int watch_port = 6160;
std::string default_watch_address();

/// A text as a value behind '#' of an address: all but unreserved characters as %XX.
std::string encoded(std::string_view text);

/// By which the page finds a run in any order of folders: its name and when it began.
std::string identity_of(const RunFacts&);
/// The name of an incident or an alert on the page and in reports: "skipped"; "critical loss_spike"; "recovery: skip done".
std::string kind_of(const IncidentEvent&);
std::string kind_of(const AlertEvent&);
std::string kind_of(const RecoveryEvent&);

/// The address of an incident's page, "http://127.0.0.1:6160/#identity=...&view=Incidents&step=131&kind=...".
std::string incident_address(const std::string& watch_address, const RunFacts&, std::int64_t step, const std::string& kind);

}  // namespace octet::telemetry
