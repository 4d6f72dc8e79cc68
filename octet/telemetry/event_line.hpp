#pragma once

#include <string>
#include <string_view>

#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// The event as one line of `metrics.jsonl`, without the newline.
std::string event_line(const Event&);

/// The event that `line` holds. Throws DataError "<where>: ..." when it is not JSON, names no known event, or lacks a field.
Event parse_event(std::string_view line, const std::string& where);

}  // namespace octet::telemetry
