#pragma once

#include <optional>
#include <string_view>

#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// The `scales` or `health` event of a line exactly as event_line() writes it, with the values that parse_event() reads; none for any other
/// line. These lines are most of the bytes of a long run, and the general parser takes several times as long for them.
std::optional<Event> scan_list_event(std::string_view line);

}  // namespace octet::telemetry
