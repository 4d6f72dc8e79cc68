#pragma once

namespace octet::telemetry::report {

/// The report's CSS: the palette in light, dark and on paper, and the layout from 360 pixels on.
extern const char* const stylesheet;

}  // namespace octet::telemetry::report
