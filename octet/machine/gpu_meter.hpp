#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "octet/machine/gpu_reading.hpp"
#include "octet/tensor/arena.hpp"

namespace octet::machine {

/// The GPU of this process over time.
class GpuMeter {
 public:
  virtual ~GpuMeter() = default;
  /// Of all samples since the last call: means of utilization, power and clock; the highest temperature and memory; all reasons for a
  /// lower clock. The last sample again where none is newer, and nothing known before the first one. Never waits for the driver.
  virtual GpuReading take() = 0;
};

/// On a GPU whose driver has a management library (octet/machine/nvml.hpp): samples by a thread of its own. Elsewhere a form that knows
/// nothing and has no thread; on a GPU a line of the log gives the reason.
std::unique_ptr<GpuMeter> gpu_meter(Device);

/// A meter of readings from elsewhere, which its thread asks for at once and then after every `period`.
std::unique_ptr<GpuMeter> sampled_meter(std::function<GpuReading()> read, std::chrono::milliseconds period);

}  // namespace octet::machine
