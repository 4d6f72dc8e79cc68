#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "octet/json/value.hpp"
#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// The event as one line of `metrics.jsonl`, without the newline.
std::string event_line(const Event&);

/// The members of that line.
json::Object event_json(const Event&);

/// An alert for a program outside: the members of its line, and `run` and `folder`, on one line without the newline.
std::string alert_message(const AlertEvent&, const std::string& run, const std::string& folder);

/// The event that `line` holds. Throws DataError "<where>: ..." when it is not JSON, names no known event, or lacks a field.
Event parse_event(std::string_view line, const std::string& where);
/// The same for readers that pass over events of later versions: none for an event of another name.
std::optional<Event> parse_known_event(std::string_view line, const std::string& where);

}  // namespace octet::telemetry
