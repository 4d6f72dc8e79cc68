#pragma once

#include <cmath>
#include <cstdint>

namespace octet::machine {

/// The state of a GPU by its driver; NaN: the driver does not tell.
struct GpuReading {
  double utilization = NAN;     // share of the time in which a kernel ran
  double power = NAN;           // [W]
  double temperature = NAN;     // [degrees Celsius]
  double sm_clock = NAN;        // of the multiprocessors [MHz]
  double memory_used = NAN;     // [bytes], by all processes
  std::int64_t throttling = 0;  // NVML's bits of the reasons for a lower clock (nvmlClocksEventReason...)

  bool known() const {
    return std::isfinite(utilization) || std::isfinite(power) || std::isfinite(temperature) || std::isfinite(sm_clock) ||
           std::isfinite(memory_used);
  }
};

}  // namespace octet::machine
