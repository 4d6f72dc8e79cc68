#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/telemetry/event.hpp"
#include "octet/watch/incident.hpp"

namespace octet::watch {

/// The events of the steps around one of them, from the file.
struct Around {
  std::vector<telemetry::StepEvent> steps{};
  std::vector<telemetry::ScalesEvent> scales{};
  std::vector<Incident> incidents{};
};

/// Events of the steps [step - reach, step + reach] among the lines within `window` bytes of `offset`. Lines that are not events are left
/// out. Where recovery went back, a step has several lines: those of the pass that the line at `offset` belongs to count. Throws IoError.
Around read_around(const std::string& path, std::int64_t offset, std::int64_t step, std::int64_t reach, std::int64_t window);

}  // namespace octet::watch
