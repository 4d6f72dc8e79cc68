#pragma once

#include <cstdint>
#include <string>

namespace octet::telemetry {

/// Bits of GpusEvent::throttling: why a GPU had a lower clock than its highest. They are those of NVML's clocks event reasons.
enum Throttling : std::int64_t {
  gpu_idle = 0x1,
  set_clocks = 0x2,  // by applications or an administrator
  power_cap = 0x4,   // the usual state of a busy GPU
  hardware_slowdown = 0x8,
  sync_boost = 0x10,
  heat = 0x20,           // found by the driver
  hardware_heat = 0x40,  // found by the GPU
  power_brake = 0x80,    // asked for by the power supply
  display_clock = 0x100,
};

/// Reasons that are a problem of the machine.
inline constexpr std::int64_t bad_throttling = hardware_slowdown | heat | hardware_heat | power_brake;

/// "power cap, heat"; "" where there is none. An unknown bit is shown as its number. The GPU's being idle and set clocks are no reasons.
std::string throttling_text(std::int64_t bits);

}  // namespace octet::telemetry
