#pragma once

#include <optional>
#include <string>

#include "octet/telemetry/event.hpp"

namespace octet::watch {

/// An event for the user's attention as the page lists it: an incident, an alert, or an action of recovery. Texts are cut, so that many of
/// them fit into memory.
struct Incident {
  std::int64_t step = 0;
  double time = 0;
  std::string kind{};  // of an incident; "critical loss_spike" of an alert, "recovery: skip done"
  std::string path{}, text{}, remedy{};
};
/// None for other events.
std::optional<Incident> as_incident(const telemetry::Event&);

/// The first `most` bytes at least of the text, up to the next character, and "..." where more follow.
std::string shortened(std::string text, std::size_t most);

}  // namespace octet::watch
