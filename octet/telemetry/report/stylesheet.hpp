#pragma once

namespace octet::report {

/// The report's CSS: the palette in light, dark and on paper, and the layout from 360 pixels on.
extern const char* const stylesheet;

}  // namespace octet::report
