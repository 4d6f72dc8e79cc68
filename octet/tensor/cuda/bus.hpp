#pragma once

#include <string>

namespace octet::cuda {

/// The address of this process' GPU on the PCI bus, "0000:1B:00.0"; "" if CUDA does not know it. Throws DeviceError where there is no GPU.
std::string bus_address();

}  // namespace octet::cuda
