#pragma once

#include <chrono>

namespace octet {

/// Seconds of the machine's monotonic clock, for differences only.
inline double monotonic_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace octet
