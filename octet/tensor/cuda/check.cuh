#pragma once

// Only for *.cuda.cu files: CUDA's error codes as DeviceError.

#include <cuda_runtime.h>

#include "octet/base/check.hpp"

namespace octet::cuda {

/// Throws DeviceError unless the call succeeded. `what` names the call.
inline void require(cudaError_t code, const char* what) {
  if (code != cudaSuccess) [[unlikely]] throw DeviceError(format("CUDA: {}: {}", what, cudaGetErrorString(code)));
}

/// After each launch: throws DeviceError when the launch itself was refused.
inline void launched(const char* kernel) { require(cudaGetLastError(), kernel); }

/// Raises a kernel's limit of dynamic shared memory where it needs more than the default.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  if (bytes > 48 * 1024) require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
}

}  // namespace octet::cuda
