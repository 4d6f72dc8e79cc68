#pragma once

// Only for *.cuda.cu files: CUDA's error codes as DeviceError.

#include <cuda_runtime.h>

#include "octet/base/check.hpp"

namespace octet::cuda {

/// Throws DeviceError unless the call succeeded. `what` names the call.
inline void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // or launched() would find it behind the next kernel
  throw DeviceError(format("CUDA: {}: {}", what, cudaGetErrorString(code)));
}

/// After each launch: throws DeviceError when the launch itself was refused.
inline void launched(const char* kernel) { require(cudaGetLastError(), kernel); }

/// Raises a kernel's limit of dynamic shared memory above the default. Throws DeviceError if the GPU has less.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  if (bytes <= 48 * 1024) return;
  const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (code != cudaSuccess) [[unlikely]]
    require(code, format("a kernel that takes {} bytes of shared memory", bytes).c_str());
}

}  // namespace octet::cuda
