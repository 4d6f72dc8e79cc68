#pragma once

// Only for *.cuda.cu files: functions of the driver, resolved on first call, so that the program also starts without a driver.

#include <cuda.h>

#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

/// The driver's function of this name, as it was in CUDA 12.0. Throws DeviceError where the driver has none.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  require(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
  if (found == nullptr) throw DeviceError(format("the NVIDIA driver has no {}; a newer driver is needed", name));
  return reinterpret_cast<Function*>(found);
}

/// Throws DeviceError unless the call succeeded. `what` names the call.
inline void require(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  if (code == CUDA_ERROR_OUT_OF_MEMORY) throw DeviceError(format("{}: the GPU is out of memory", what));
  throw DeviceError(format("NVIDIA driver: {}: error {}", what, int(code)));
}

}  // namespace octet::cuda
