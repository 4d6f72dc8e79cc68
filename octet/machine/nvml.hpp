#pragma once

#include <functional>
#include <memory>
#include <string>

#include "octet/machine/gpu_reading.hpp"

namespace octet::machine {

/// NVIDIA's management library, for one GPU. It has no header here: functions are found by name, with the types of its stable interface.
/// Source: NVML API Reference, "Device Queries" and "Clocks Event Reasons".
class Nvml {
 public:
  /// The address of a function by its name; null where there is none.
  using Find = std::function<void*(const char* name)>;

  /// The library libnvidia-ml.so.1, which comes with the driver. `bus`: the GPU's address on the PCI bus, "0000:1b:00.0".
  /// Throws DeviceError where it cannot be opened, or does not know that GPU.
  static std::unique_ptr<Nvml> open(const std::string& bus);
  /// The same of functions from elsewhere.
  Nvml(Find, const std::string& bus);
  ~Nvml();
  Nvml(const Nvml&) = delete;

  /// One look, which may take milliseconds. A number that the GPU does not tell stays NaN.
  GpuReading read() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
  void* gpu_ = nullptr;
};

}  // namespace octet::machine
